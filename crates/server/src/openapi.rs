//! The OpenAPI document, made from the table of calls and the request and response schemas. Pure.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use crate::calls::table::{CALLS, Call, TEST_CLOCK};
use crate::json::{Field, Form, Shape};
use crate::metrics;
use crate::problem::Code;
use crate::shapes;
use crate::tokens::Right;

/// The problems that every call may have.
const ALWAYS: &[Code] = &[
    Code::BadValue,
    Code::Unauthorized,
    Code::Forbidden,
    Code::ForeignOrigin,
    Code::ForeignHost,
    Code::TooMany,
    Code::Unavailable,
];
/// The additional problems of a call with a body.
const WITH_BODY: &[Code] =
    &[Code::Timeout, Code::BodyTooLarge, Code::UnsupportedMediaType, Code::Unknown];

/// The document, made once.
pub(crate) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(document)
}

/// The document, pretty-printed.
fn document() -> String {
    let mut schemas = Schemas::default();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for call in CALLS.iter().filter(|call| call.path != TEST_CLOCK) {
        paths
            .entry(call.path)
            .or_default()
            .insert(call.method.into(), operation(call, &mut schemas));
    }
    schemas.add(&shapes::PROBLEM);
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.parts().1).collect();
    if let Some(problem) = schemas.0.get_mut("Problem") {
        problem["properties"]["code"]["enum"] = json!(codes);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tourbillon",
            "summary": "Durable timers over HTTP",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.0,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn operation(call: &Call, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    let in_path = [
        ("queue", json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}), "Its name."),
        ("key", schemas.form(&Form::Key), "Its key, percent-encoded."),
    ];
    for (name, schema, about) in in_path {
        if call.path.contains(&format!("{{{name}}}")) {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": about, "schema": schema,
            }));
        }
    }
    let query = |field: &'static Field, schemas: &mut Schemas| {
        json!({
            "name": field.name, "in": "query", "description": field.about,
            "schema": schemas.form(&field.form),
        })
    };
    parameters.extend(call.query.iter().map(|field| query(field, schemas)));
    let mut operation = json!({
        "summary": call.about,
        "parameters": parameters,
        "responses": responses(call, schemas),
    });
    if call.right != Right::Open {
        // Without a token file, requests need no token.
        operation["security"] = json!([{"token": []}, {}]);
        operation["description"] =
            json!(format!("Needs the right `{:?}`.", call.right).to_lowercase());
    }
    if !call.bodies.is_empty() {
        let one_of: Vec<Value> = call.bodies.iter().map(|shape| schemas.add(shape)).collect();
        operation["requestBody"] = json!({
            "content": {"application/json": {"schema": any_of(one_of)}},
        });
    }
    operation
}

/// One schema, or a choice of several.
fn any_of(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 { schemas.remove(0) } else { json!({ "anyOf": schemas }) }
}

fn responses(call: &Call, schemas: &mut Schemas) -> Value {
    let mut responses = Map::new();
    for (status, shape) in call.answers {
        let (kind, schema) = match shape.name {
            "Made" => {
                let both = vec![schemas.add(&shapes::TIMER), schemas.add(&shapes::OUTCOMES)];
                ("application/json", any_of(both))
            }
            "Document" => ("application/json", json!({"type": "object"})),
            "Events" => ("text/event-stream", json!({"type": "string"})),
            "Dump" => ("application/x-ndjson", json!({"type": "string"})),
            "Metrics" => (metrics::KIND, json!({"type": "string"})),
            _ => ("application/json", schemas.add(shape)),
        };
        let content = json!({kind: {"schema": schema}});
        let answer = json!({"description": "Done.", "content": content});
        responses.insert(status.to_string(), answer);
    }
    let mut codes: Vec<Code> = call.problems.to_vec();
    codes.extend(ALWAYS);
    codes.extend(call.bodies.iter().flat_map(|_| WITH_BODY));
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        let (status, name, _) = code.parts();
        let names = by_status.entry(status).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for (status, names) in by_status {
        let schema = json!({"$ref": "#/components/schemas/Problem"});
        let problem = json!({
            "description": names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            "content": {"application/problem+json": {"schema": schema}},
        });
        responses.insert(status.to_string(), problem);
    }
    Value::Object(responses)
}

/// The schemas referenced so far.
#[derive(Default)]
struct Schemas(BTreeMap<String, Value>);

impl Schemas {
    /// A reference to the schema of a shape.
    fn add(&mut self, shape: &'static Shape) -> Value {
        if !self.0.contains_key(shape.name) {
            self.0.insert(shape.name.into(), Value::Null);
            let mut properties = Map::new();
            for field in shape.fields {
                let mut schema = self.form(&field.form);
                schema["description"] = json!(field.about);
                properties.insert(field.name.into(), schema);
            }
            let schema = json!({
                "type": "object", "properties": properties, "additionalProperties": false,
            });
            self.0.insert(shape.name.into(), schema);
        }
        json!({"$ref": format!("#/components/schemas/{}", shape.name)})
    }

    fn form(&mut self, form: &'static Form) -> Value {
        match form {
            Form::Duration => {
                json!({"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d|w))+$", "examples": ["1h30m"]})
            }
            Form::Moment => json!({"type": "string", "format": "date-time"}),
            Form::Key => json!({"type": "string", "minLength": 1, "maxLength": 256}),
            Form::Text => json!({"type": "string"}),
            Form::OneOf(names) => json!({"type": "string", "enum": names}),
            Form::Flag => json!({"type": "boolean"}),
            Form::Whole(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Form::Number => json!({"type": "number"}),
            Form::Any => json!({}),
            Form::Texts => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Form::Object(shape) => self.add(shape),
            Form::List(form, usize::MAX) => json!({"type": "array", "items": self.form(form)}),
            Form::List(form, most) => {
                json!({"type": "array", "items": self.form(form), "maxItems": most})
            }
            Form::OrNull(form) => any_of(vec![self.form(form), json!({"type": "null"})]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed document must match the code. `TOURBILLON_WRITE=1` rewrites it.
    #[test]
    fn the_committed_document_is_the_codes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        if std::env::var_os("TOURBILLON_WRITE").is_some() {
            std::fs::write(path, document()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == document(),
            "run this test with TOURBILLON_WRITE=1, and commit {path}"
        );
    }
}
