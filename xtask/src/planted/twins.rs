//! The twins of the models, one per line of `planted/loom.txt` and `planted/shuttle.txt`.
//!
//! ```text
//! model | fault                       a fault that planted/engine/ lists, with its harm
//! model | fault | what goes wrong     one that only the twins use
//! ```

use std::fs;

use crate::shell::{Outcome, root};

/// The flags of the model checkers.
pub(crate) const FLAGS: [&str; 2] = ["loom", "shuttle"];

/// A model, and a fault with which it must fail.
pub(crate) struct Twin {
    pub(crate) model: String,
    pub(crate) fault: String,
    /// `None` if `planted/engine/` describes it.
    pub(super) harm: Option<String>,
}

/// The twins of a model checker, in the order of the list.
pub(crate) fn twins(flag: &str) -> Outcome<Vec<Twin>> {
    let list = list(flag);
    let text =
        fs::read_to_string(root().join(&list)).map_err(|error| format!("{list}: {error}"))?;
    let parse = |line: &str| {
        let columns: Vec<&str> = line.split(" | ").collect();
        let (model, fault, harm) = match columns[..] {
            [model, fault] => (model, fault, None),
            [model, fault, harm] => (model, fault, Some(harm.to_string())),
            _ => return Err(format!("{list}: {line:?} is not `model | fault | what goes wrong`")),
        };
        Ok(Twin { model: model.to_string(), fault: fault.to_string(), harm })
    };
    text.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

/// The path of the list.
pub(crate) fn list(flag: &str) -> String {
    format!("planted/{flag}.txt")
}
