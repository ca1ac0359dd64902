//! Typed payloads: JSON by serde, with the feature `serde`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::delivery::Delivery;
use crate::values::{NewTimer, Payload, View};

impl NewTimer {
    /// Sets the payload to that value as JSON, and its [content](crate::Content) to JSON.
    ///
    /// # Errors
    /// The value cannot be represented in JSON.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon_durable::{Durable, NewTimer};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    /// struct Order {
    ///     id: u64,
    /// }
    ///
    /// let durable = Durable::memory()?;
    /// let orders = durable.queue("orders")?;
    /// orders.schedule(NewTimer::after(Duration::ZERO).json(&Order { id: 17 })?).wait()?;
    /// for delivery in orders.receive(1, Duration::from_secs(20)).wait()? {
    ///     assert_eq!(delivery.json::<Order>()?, Order { id: 17 });
    ///     delivery.ack().wait()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn json<T: Serialize + ?Sized>(self, value: &T) -> Result<Self, serde_json::Error> {
        Ok(NewTimer { payload: Payload::json(serde_json::to_string(value)?), ..self })
    }
}

impl Delivery {
    /// Deserializes the payload from JSON.
    ///
    /// # Errors
    /// It is not JSON, or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(self.payload())
    }
}

impl View {
    /// Deserializes the payload from JSON.
    ///
    /// # Errors
    /// It is not JSON, or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.payload)
    }
}
