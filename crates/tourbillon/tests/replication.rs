//! The output of the example `replication`, word for word.

#[path = "../examples/replication/broker.rs"]
mod broker;
#[path = "../examples/replication/story.rs"]
mod story;

#[test]
fn the_example_tells_its_story() {
    let expected = [
        "    0 ms  audit log produces 10 bytes to audit-0",
        "    0 ms  audit log is answered: on all replicas",
        "   10 ms  shop produces 300 bytes to orders-0",
        "   10 ms  shop waits for the followers",
        "   30 ms  follower b has fetched orders-0",
        "   45 ms  follower c has fetched orders-0",
        "   45 ms  shop is answered: on all replicas",
        "  100 ms  bulk import produces 200 bytes to orders-0 and orders-1",
        "  100 ms  bulk import waits for the followers",
        "  100 ms  follower b has fetched orders-0",
        "  100 ms  follower b has fetched orders-1",
        "  105 ms  follower c has fetched orders-0",
        "  105 ms  bulk import is answered: on all replicas",
        "  200 ms  shop produces 300 bytes to orders-0",
        "  200 ms  shop waits for the followers",
        "  200 ms  follower b has fetched orders-0",
        "  700 ms  shop is answered: TIMED OUT, not on all replicas of orders-0",
        "  800 ms  consumer fetches from orders-1, at least 500 bytes",
        "  850 ms  shop produces 300 bytes to orders-1",
        "  850 ms  shop waits for the followers",
        "  850 ms  follower b has fetched orders-1",
        "  850 ms  shop is answered: on all replicas",
        "  900 ms  shop produces 300 bytes to orders-1",
        "  900 ms  shop waits for the followers",
        "  900 ms  consumer is answered: 600 bytes of orders-1",
        "  900 ms  follower b has fetched orders-1",
        "  900 ms  shop is answered: on all replicas",
        "  900 ms  consumer fetches from orders-1, at least 1000 bytes",
        " 1150 ms  consumer is answered: time is up, 300 bytes of the 1000",
        " 1250 ms  shop produces 300 bytes to orders-0",
        " 1250 ms  shop waits for the followers",
        " 1250 ms  consumer fetches from orders-0, at least 1000 bytes",
        " 1260 ms  orders-0 has a new leader elsewhere",
        " 1260 ms  shop is answered: ask the new leader of orders-0",
        " 1260 ms  consumer is answered: ask the new leader of orders-0",
        " 1260 ms  0 operations wait, 0 timers are pending",
    ];
    assert_eq!(story::tell(), expected);
    assert_eq!(story::tell(), expected, "and tells it again");
}
