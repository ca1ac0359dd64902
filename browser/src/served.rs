//! `tourbillon serve` in this process, on a store of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;
use tourbillon_cli::serve::{Settings, run};

/// A server; it stops when this is dropped, and its store goes.
pub struct Served {
    address: SocketAddr,
    data: PathBuf,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Served {
    /// Starts one on any port.
    ///
    /// # Panics
    /// It does not start.
    pub fn start() -> Served {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tourbillon-served-{}-{number}", std::process::id());
        let data = std::env::temp_dir().join(name);
        let settings = Settings { data: data.clone(), ..Settings::default() };
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
            let stop = async {
                let _ = stopped.await;
            };
            let (_reload, reloads) = tokio::sync::mpsc::channel(1);
            let ready =
                |_: &str, address: SocketAddr| tell.send(address).map_err(std::io::Error::other);
            runtime.block_on(run(settings, stop, reloads, ready)).expect("the server runs");
        });
        let address = told.recv().expect("the server starts");
        debug_assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
        Served { address, data, running: Some((stop, thread)) }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.data);
    }
}
