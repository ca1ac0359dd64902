//! Schemas: the fields of an object, and the form of each.

/// The fields of an object.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its name in the OpenAPI document.
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
}

/// A field of an object, or a parameter of a query.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Its meaning, in one sentence.
    pub(crate) about: &'static str,
}

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Form {
    /// A duration such as `"1h30m"`.
    Duration,
    /// A moment by RFC 3339.
    Moment,
    /// A key.
    Key,
    /// Any text.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A whole number between these.
    Whole(u64, u64),
    /// Any number.
    Number,
    /// Any JSON.
    Any,
    /// An object whose values are texts.
    Texts,
    /// An object.
    Object(&'static Shape),
    /// A list of at most this many values.
    List(&'static Form, usize),
    /// A value of that form, or null.
    OrNull(&'static Form),
}

impl Form {
    /// What a value of this form must be, for error messages.
    pub(crate) fn must(&self) -> String {
        match self {
            Form::Duration => "a duration as \"90s\" or \"1h30m\", at most 1000 years".into(),
            Form::Moment => {
                "a moment as \"2026-11-16T18:30:00.250Z\", from 1970 to 9999, with an offset or Z"
                    .into()
            }
            Form::Key => "a text of 1 to 256 bytes without control characters, not . or ..".into(),
            Form::Text => "a text".into(),
            Form::OneOf(names) => format!("one of {}", names.join(", ")),
            Form::Flag => "true or false".into(),
            Form::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Form::Number => "a number".into(),
            Form::Any => "JSON".into(),
            Form::Texts => "an object whose values are texts".into(),
            Form::Object(_) => "an object".into(),
            Form::List(_, most) => format!("a list of at most {most}"),
            Form::OrNull(form) => format!("{}, or null", form.must()),
        }
    }
}
