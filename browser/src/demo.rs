//! The live page's server, in this process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;
use tourbillon_cli::demo;

/// A server that can be stopped and restarted; stopped on drop.
pub struct Demo {
    address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Demo {
    /// Starts a server on any port.
    ///
    /// # Panics
    /// No port is free.
    pub fn start() -> Demo {
        let mut demo = Demo { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), running: None };
        demo.resume();
        demo
    }

    /// Restarts it on the same port.
    ///
    /// # Panics
    /// Another process has taken the port meanwhile.
    pub fn resume(&mut self) {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let port = self.address.port();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            runtime.block_on(async {
                let local = IpAddr::from(Ipv4Addr::LOCALHOST);
                let listener = demo::listen(local, Some(port)).await.expect("the port is free");
                tell.send(listener.local_addr().expect("it has an address"))
                    .expect("it is waited for");
                tokio::select! {
                    () = demo::serve(listener) => {}
                    _ = stopped => {}
                }
            });
            // Dropping the runtime closes every connection.
        });
        self.address = told.recv().expect("the server starts");
        self.running = Some((stop, thread));
    }

    /// Stops it and closes its connections.
    pub fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.stop();
    }
}
