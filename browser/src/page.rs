//! One tab of the browser.
//!
//! Every call waits for its result and panics if there is none, because this module is for tests. Errors that the page
//! reports and addresses that it requests are recorded on the way.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

const PATIENCE: Duration = Duration::from_secs(30);

/// A tab's viewport and the visitor's preferences.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its width in pixels.
    pub width: u32,
    /// Its height.
    pub height: u32,
    /// Whether the visitor prefers a dark colour scheme.
    pub dark: bool,
    /// Whether the visitor prefers reduced motion.
    pub calm: bool,
    /// The visitor's language.
    pub language: &'static str,
    /// Device pixels per CSS pixel.
    pub scale: f64,
}

impl Look {
    /// A laptop with a light colour scheme, in English.
    pub const LAPTOP: Look =
        Look { width: 1280, height: 800, dark: false, calm: false, language: "en-GB", scale: 1.0 };
    /// On a phone.
    pub const PHONE: Look = Look { width: 390, height: 844, scale: 2.0, ..Look::LAPTOP };
}

/// A tab.
pub struct Page {
    socket: WebSocket<TcpStream>,
    last: u64,
    complaints: Vec<String>,
    requests: Vec<String>,
}

impl Page {
    pub(crate) fn open(connect: &dyn Fn() -> TcpStream, address: &str, look: Look) -> Page {
        let version =
            http(connect(), &format!("PUT /json/new?about:blank HTTP/1.1\r\nHost: {address}"));
        let target =
            version["webSocketDebuggerUrl"].as_str().expect("a tab has an address").to_owned();
        let stream = connect();
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let (socket, _) = tungstenite::client(target, stream).expect("a tab can be spoken to");
        let mut page = Page { socket, last: 0, complaints: Vec::new(), requests: Vec::new() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.look(look);
        page
    }

    /// Changes the size, the colours and the language of the tab.
    pub fn look(&mut self, look: Look) {
        let Look { width, height, dark, calm, language, scale } = look;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let motion = if calm { "reduce" } else { "no-preference" };
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        let agent = self.eval("navigator.userAgent");
        let agent = json!({"userAgent": agent, "acceptLanguage": language});
        self.call("Emulation.setUserAgentOverride", agent);
    }

    /// Opens an address.
    pub fn visit(&mut self, url: &str) {
        // A browser does not reload the same address with another fragment.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.call("Page.navigate", json!({"url": url}));
    }

    /// Opens an address of the live page and waits until its wheel is drawn.
    pub fn goto(&mut self, url: &str) {
        self.visit(url);
        self.wait("document.querySelector('#done')?.textContent");
    }

    /// The value of an expression in the page, once its promise is resolved.
    pub fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let value =
            self.eval(&format!("document.querySelector({}).textContent.trim()", json!(selector)));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while !truthy(&self.eval(expression)) {
            if began.elapsed() > PATIENCE {
                let page = self.eval("document.body.innerText");
                panic!(
                    "never came true: {expression}\ncomplaints: {:?}\npage: {page}",
                    self.complaints
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Clicks the middle of an element, as a person would: an element on top of it gets the click.
    ///
    /// A page that changes by itself may move the element away from the pointer; then the click is repeated.
    pub fn click(&mut self, selector: &str) {
        let find = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center'}});
              window.clickCame = false;
              e.addEventListener('click', () => (window.clickCame = true), {{ once: true, capture: true }});
              const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2, e.disabled]; }})()",
            json!(selector)
        );
        self.wait(&format!("document.querySelector({})?.checkVisibility()", json!(selector)));
        for _ in 0..10 {
            let found = self.eval(&find);
            assert!(!truthy(&found[2]), "{selector} is disabled");
            let [x, y] = [0, 1].map(|i| found[i].as_f64().unwrap_or(0.0));
            self.click_at(x, y);
            let moved = format!(
                "window.clickCame === false && !document.querySelector({}).contains(document.elementFromPoint({x}, {y}))
                  && (() => {{ const b = document.querySelector({0}).getBoundingClientRect();
                    return b.x + b.width / 2 !== {x} || b.y + b.height / 2 !== {y}; }})()",
                json!(selector)
            );
            if !truthy(&self.eval(&moved)) {
                return;
            }
        }
        panic!("{selector} does not stay in one place");
    }

    /// Clicks a point of the window.
    pub fn click_at(&mut self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Replaces the text of a field by typing.
    pub fn fill(&mut self, selector: &str, text: &str) {
        self.eval(&format!(
            "(() => {{ const e = document.querySelector({}); e.focus(); e.select(); }})()",
            json!(selector)
        ));
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses a key, by its name: `Enter`, `ArrowRight`.
    pub fn key(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key, "code": key}));
        }
    }

    /// A screenshot of the window, as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let text = answer["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(text).expect("a picture in base64")
    }

    /// The exceptions and console errors of the page since the last call.
    pub fn complaints(&mut self) -> Vec<String> {
        self.eval("0");
        std::mem::take(&mut self.complaints)
    }

    /// The addresses requested by the page since the last call.
    pub fn requests(&mut self) -> Vec<String> {
        self.eval("0");
        std::mem::take(&mut self.requests)
    }

    /// Sends a DevTools command. Returns its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let message = json!({"id": id, "method": method, "params": params}).to_string();
        self.socket.send(Message::text(message)).expect("the browser listens");
        loop {
            let message = self.socket.read().unwrap_or_else(|error| panic!("{method}: {error}"));
            let Ok(text) = message.to_text() else { continue };
            let Ok(mut answer) = serde_json::from_str::<Value>(text) else { continue };
            if answer["id"] != id {
                self.note(&answer);
                continue;
            }
            assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
            return answer["result"].take();
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            "Runtime.consoleAPICalled"
                if params["type"] == "error" || params["type"] == "warning" =>
            {
                self.complaints.push(params["args"].to_string());
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests
                    .push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            "Network.webSocketCreated" => {
                self.requests.push(params["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let close = json!({"id": 0, "method": "Page.close"}).to_string();
        let _ = self.socket.send(Message::text(close));
    }
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value != "" && value != 0
}

/// Sends an HTTP request. Returns the JSON of the answer.
fn http(mut stream: TcpStream, head: &str) -> Value {
    use std::io::{Read, Write};
    stream
        .write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())
        .expect("it is written");
    let mut bytes = [0; 8192];
    let mut text = String::new();
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    loop {
        let count = stream.read(&mut bytes).expect("the browser answers");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if let Ok(value) = serde_json::from_str(body) {
            return value;
        }
        assert!(count > 0, "the browser answered {text}");
    }
}
