//! A headless Chromium, driven by its `DevTools` protocol through two named pipes: JSON, a NUL after each message.

#![allow(dead_code)] // Each test file uses its part.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct PageLook {
    pub width: u32,
    pub dark: bool,
    pub script: bool,
}

/// A running browser. It ends with this.
pub struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    last: u64,
    _home: TempDir,
}

/// A page in it.
pub struct Tab<'b> {
    browser: &'b mut Browser,
    session: String,
}

/// The browser's name, where it is installed.
fn installed() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let answers = |name: &&str| {
        let run = Command::new(name).arg("--version").output();
        run.is_ok_and(|output| output.status.success())
    };
    names.into_iter().find(|name| answers(name))
}

impl Browser {
    /// Starts one; `None` where none is installed.
    pub fn start() -> Option<Self> {
        let name = installed()?;
        let home = TempDir::new().expect("a directory");
        let [to, from] = ["to", "from"].map(|pipe| home.path().join(pipe));
        for pipe in [&to, &from] {
            let made = Command::new("mkfifo").arg(pipe).status();
            assert!(made.expect("mkfifo runs").success());
        }
        let command = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                       --user-data-dir=\"$1\" --remote-debugging-pipe 3<\"$2\" 4>\"$3\"";
        let child = Command::new("sh")
            .args(["-c", command, name])
            .args([home.path().join("profile"), to.clone(), from.clone()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        // The shell opens both in this order, and waits for the other end.
        let to = File::options().write(true).open(&to).expect("a pipe");
        let from = BufReader::new(File::open(&from).expect("a pipe"));
        Some(Browser {
            child,
            to,
            from,
            last: 0,
            _home: home,
        })
    }

    fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(message.to_string().as_bytes())
            .expect("it listens");
        self.to.write_all(b"\0").expect("it listens");
        let id = self.last;
        let answer = self.wait(|message| message["id"] == json!(id));
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).expect("it answers");
            assert_eq!(bytes.pop(), Some(0), "the browser ended");
            let message: Value = serde_json::from_slice(&bytes).expect("JSON");
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Opens a file and waits until it is there.
    pub fn open(&mut self, file: &Path, look: PageLook) -> Tab<'_> {
        self.visit(&format!("file://{}", file.display()), look)
    }

    /// Opens an address and waits until it is there.
    pub fn visit(&mut self, url: &str, look: PageLook) -> Tab<'_> {
        let target = self.call(None, "Target.createTarget", &json!({"url": "about:blank"}));
        let attached = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call(None, "Target.attachToTarget", &attached);
        let session = session["sessionId"].as_str().expect("a session").to_owned();
        let scheme = if look.dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let size = json!({"width": look.width, "height": 800, "deviceScaleFactor": 1, "mobile": look.width < 600});
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Runtime.enable", json!({})),
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", json!({"features": features})),
            (
                "Emulation.setScriptExecutionDisabled",
                json!({"value": !look.script}),
            ),
        ] {
            self.call(Some(&session), method, &params);
        }
        self.last += 1;
        let message = json!({"id": self.last, "sessionId": session, "method": "Page.navigate", "params": {"url": url}});
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("it listens");
        self.wait(|it| it["method"] == "Page.loadEventFired" && it["sessionId"] == json!(session));
        Tab {
            browser: self,
            session,
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tab<'_> {
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let session = self.session.clone();
        self.browser.call(Some(&session), method, params)
    }

    /// The value of an expression of JavaScript.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Whether it is true.
    pub fn holds(&mut self, expression: &str) -> bool {
        self.value(expression) == json!(true)
    }

    /// Presses a key where the focus is.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        let mut params = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if !text.is_empty() {
            params["text"] = json!(text);
        }
        self.call("Input.dispatchKeyEvent", &params);
        params["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &params);
    }

    /// Moves the pointer, in pixels of the window.
    pub fn point(&mut self, x: f64, y: f64) {
        let params = json!({"type": "mouseMoved", "x": x, "y": y});
        self.call("Input.dispatchMouseEvent", &params);
    }
}
