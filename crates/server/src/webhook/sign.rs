//! Secrets and signatures, by Standard Webhooks.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac::{HMAC_SHA256, Key, sign};

/// The secrets that sign posts, by queue.
///
/// A file has one secret per line, `whsec_BASE64[:queue or prefix.]`. If two lines have the same scope, both sign, so
/// that a secret can be rotated. If several scopes match a queue, the longest applies.
#[derive(Clone, Default)]
pub struct Secrets(Vec<(String, Key)>);

/// Prints the scopes, not the secrets.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(scope, _)| scope)).finish()
    }
}

impl Secrets {
    /// Parses the lines of a file.
    ///
    /// # Errors
    /// The number of the first invalid line and what is wrong; never a secret.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut secrets: Vec<(String, Key)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| format!("line {}: {why}", number + 1);
            let (secret, scope) = line.split_once(':').unwrap_or((line, ""));
            let bytes = secret.strip_prefix("whsec_").and_then(|text| BASE64.decode(text).ok());
            let bytes = bytes.filter(|bytes| (16..=64).contains(&bytes.len()));
            let bytes = bytes
                .ok_or_else(|| wrong("the secret is not whsec_ and 16 to 64 bytes in base64"))?;
            if secrets.iter().filter(|(of, _)| of == scope).count() == 2 {
                return Err(wrong("a scope has two secrets at most"));
            }
            secrets.push((scope.to_owned(), Key::new(HMAC_SHA256, &bytes)));
        }
        if secrets.is_empty() {
            Err("there is no secret in it".into())
        } else {
            Ok(Secrets(secrets))
        }
    }

    /// The signatures of a post, if there is a secret for its queue.
    pub(super) fn signature(
        &self,
        queue: &str,
        id: &str,
        timestamp: u64,
        body: &[u8],
    ) -> Option<String> {
        let has = |scope: &str| {
            scope.is_empty() || scope == queue || scope.ends_with('.') && queue.starts_with(scope)
        };
        let scopes = self.0.iter().map(|(scope, _)| scope).filter(|scope| has(scope));
        let scope = scopes.max_by_key(|scope| scope.len())?;
        let signed = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let those = self.0.iter().filter(|(of, _)| of == scope);
        let one = |(_, key): &(String, Key)| format!("v1,{}", BASE64.encode(sign(key, &signed)));
        Some(those.map(one).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks specification.
    #[test]
    fn a_signature_is_the_standards() {
        let secrets = Secrets::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secrets.signature(
            "any",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn the_longest_scope_signs_with_all_its_secrets() {
        let line = |byte: u8, scope: &str| format!("whsec_{}{scope}\n", BASE64.encode([byte; 24]));
        let text = line(1, "") + &line(2, ":shop.") + &line(3, ":shop.") + &line(4, ":shop.eu");
        let secrets = Secrets::parse(&text).unwrap();
        let count = |queue| secrets.signature(queue, "id", 1, b"").unwrap().split(' ').count();
        assert_eq!(["other", "shop.us", "shop.eu", "shop"].map(count), [1, 2, 1, 1]);
        assert_eq!(Secrets::default().signature("q", "id", 1, b""), None);
        for wrong in ["", "whsec_", "whsec_x", "hush-hush", "whsec_aHVzaA=="] {
            assert!(!Secrets::parse(wrong).unwrap_err().contains("hush"), "{wrong}");
        }
        assert!(Secrets::parse(&line(1, "").repeat(3)).is_err());
    }
}
