//! Checks answers against the OpenAPI document: the call lists the status, and the body matches its schema.

use std::sync::LazyLock;

use serde_json::Value;

use crate::world::Answer;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

/// Checks an answer, if the document has its path.
pub(crate) fn check(method: &str, path: &str, answer: &Answer) {
    let Some(operation) = operation(method, path) else {
        let page =
            ["/", "/page.css", "/main.js", "/icon.svg", "/base.css", "/shared.js"].contains(&path);
        let known = answer.status >= 400 || page || path.starts_with("/v1/test/");
        assert!(known, "{path} is in no document");
        return;
    };
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{method} {path} has no {}: {}", answer.status, answer.text);
    let kind = answer.headers["content-type"].to_str().unwrap();
    let schema = &response["content"][kind]["schema"];
    assert!(!schema.is_null(), "{method} {path} {} is no {kind}", answer.status);
    if !kind.ends_with("json") || kind.ends_with("ndjson") {
        return;
    }
    if let Err(wrong) = fits(&answer.json, schema) {
        panic!("{method} {path}: {wrong}\n{}", answer.text);
    }
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let paths = DOCUMENT["paths"].as_object()?;
    let segments = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let matches = |template: &str| {
        let (template, path) = (segments(template), segments(path));
        template.len() == path.len()
            && template
                .iter()
                .zip(&path)
                .all(|(a, b)| a == b || a.starts_with('{') && !b.is_empty())
    };
    let found = paths.iter().find(|(template, _)| matches(template))?.1;
    found.get(method.to_lowercase())
}

/// Whether a value matches a schema. Supports only the keywords that the document uses.
fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{value} is not {why}"));
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return fits(value, &DOCUMENT["components"]["schemas"][name]);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fine = any.iter().any(|schema| fits(value, schema).is_ok());
        return if fine { Ok(()) } else { wrong(&format!("any of {schema}")) };
    }
    if schema["enum"].as_array().is_some_and(|names| !names.contains(value)) {
        return wrong(&schema["enum"].to_string());
    }
    match schema["type"].as_str() {
        None => Ok(()),
        Some("null") if value.is_null() => Ok(()),
        Some("string") if value.is_string() => Ok(()),
        Some("boolean") if value.is_boolean() => Ok(()),
        Some("number") if value.is_number() => Ok(()),
        Some("integer") if value.is_u64() => Ok(()),
        Some("array") if value.is_array() => {
            value.as_array().unwrap().iter().try_for_each(|one| fits(one, &schema["items"]))
        }
        Some("object") if value.is_object() => {
            let Some(known) = schema["properties"].as_object() else { return Ok(()) };
            for (name, value) in value.as_object().unwrap() {
                let Some(schema) = known.get(name) else {
                    return wrong(&format!("an object without {name}"));
                };
                fits(value, schema)?;
            }
            Ok(())
        }
        Some(kind) => wrong(kind),
    }
}
