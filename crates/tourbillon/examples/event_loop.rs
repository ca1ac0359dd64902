//! An event loop that drives the timers itself: one thread, two sockets, and no library thread.
//!
//! Run it with `cargo run --release -p tourbillon --example event_loop`. A client sends requests to a server over
//! loopback, both in the same loop; the server drops every third request. A request without an answer is sent again
//! every 30 ms; a heartbeat counts tenths of seconds; after 900 ms, another thread ends the loop by a timer. Linux
//! only, because the loop polls sockets and the driver's file descriptor.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("this example polls file descriptors as Linux has them");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
    use std::thread;
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tourbillon::{Driver, Repeat, Timeout, Timer, WakeFd};

    const MS: Duration = Duration::from_millis(1);
    const REQUESTS: u32 = 12;

    type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

    /// Two connected sockets.
    fn pair() -> Outcome<(Arc<UdpSocket>, UdpSocket)> {
        let (client, server) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        client.connect(server.local_addr()?)?;
        server.connect(client.local_addr()?)?;
        client.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        Ok((Arc::new(client), server))
    }

    /// Sends a request, and repeats it every 30 ms until its timer is cancelled.
    fn request(timer: &Timer, client: &Arc<UdpSocket>, number: u32) -> Outcome<Timeout> {
        client.send(&number.to_be_bytes())?;
        let again = client.clone();
        let resend = timer.repeat(Repeat::every(MS * 30), move |_| {
            println!("         request {number} has no answer: once more");
            let _ = again.send(&number.to_be_bytes());
        })?;
        Ok(resend)
    }

    /// Sleeps until a socket is readable, the driver has work, or its timeout has passed.
    fn sleep(driver: &Driver, bell: &WakeFd, sockets: [&UdpSocket; 2]) -> Outcome<()> {
        let timeout = driver.timeout().map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = [
            PollFd::new(bell, PollFlags::IN),
            PollFd::new(sockets[0], PollFlags::IN),
            PollFd::new(sockets[1], PollFlags::IN),
        ];
        poll(&mut fds, timeout.as_ref())?;
        Ok(())
    }

    pub(super) fn main() -> Outcome<()> {
        let (timer, mut driver) = Timer::builder().build_driven()?;
        let bell = driver.wake_fd()?;
        let (client, server) = pair()?;
        let beats = Arc::new(AtomicU32::new(0));
        let count = beats.clone();
        timer.repeat(Repeat::every(MS * 100), move |_| _ = count.fetch_add(1, SeqCst))?;

        // A timer that another thread arms wakes the loop if it is earlier than the loop's next deadline.
        let over = Arc::new(AtomicBool::new(false));
        let (other, end, began) = (timer.clone(), over.clone(), Instant::now());
        let stopper = thread::spawn(move || {
            thread::sleep(MS * 900);
            other.schedule(Duration::ZERO, move |_| end.store(true, SeqCst)).is_ok()
        });

        let (mut open, mut answered, mut received) = (Vec::new(), 0, 0_u32);
        let mut buffer = [0; 4];
        for number in 0..REQUESTS {
            open.push(Some(request(&timer, &client, number)?));
        }
        let mut turns = 0_u32;
        while !over.load(SeqCst) {
            sleep(&driver, &bell, [&client, &server])?;
            driver.turn();
            turns += 1;
            // The server, which drops every third request.
            while let Ok(4) = server.recv(&mut buffer) {
                received += 1;
                if received % 3 != 0 {
                    server.send(&buffer)?;
                }
            }
            // The client: an answer cancels the timer of its request.
            while let Ok(4) = client.recv(&mut buffer) {
                let number = u32::from_be_bytes(buffer);
                if open[number as usize].take().is_some_and(|timeout| timeout.cancel()) {
                    answered += 1;
                    println!("{:>4} ms  request {number} answered", began.elapsed().as_millis());
                }
            }
        }
        assert!(stopper.join().unwrap());
        println!(
            "{answered} of {REQUESTS} answered with {received} sent, {} heartbeats, in {turns} turns of the loop",
            beats.load(SeqCst)
        );
        assert_eq!(answered, REQUESTS);
        assert!(beats.load(SeqCst) >= 8, "a heartbeat every 100 ms");
        assert_eq!(timer.stop().len(), 1, "the heartbeat is handed back");
        Ok(())
    }
}
