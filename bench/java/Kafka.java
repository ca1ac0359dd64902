// Kafka's SystemTimer: compiled where its jar was given. A thread advances its clock, as Kafka's reaper does.

import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

final class Kafka implements Service {
    private final SystemTimer timer = new SystemTimer("timer-kafka");
    private volatile boolean stopped;

    Kafka() {
        Thread reaper = new Thread(() -> {
            while (!stopped) {
                try {
                    timer.advanceClock(200);
                } catch (InterruptedException wrong) {
                    return;
                }
            }
        }, "timer-reaper");
        reaper.setDaemon(true);
        reaper.start();
    }

    public Object schedule(long nanos, Runnable callback) {
        // Its unit is the millisecond: rounded up, never early.
        TimerTask task = new TimerTask((nanos + 999_999) / 1_000_000) {
            @Override
            public void run() {
                callback.run();
            }
        };
        timer.add(task);
        return task;
    }

    public boolean cancel(Object handle) {
        ((TimerTask) handle).cancel();
        return true;
    }

    public void stop() {
        stopped = true;
    }
}
