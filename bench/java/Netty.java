// Netty's HashedWheelTimer: compiled where netty-common is found.

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.concurrent.TimeUnit;

final class Netty implements Service {
    private final HashedWheelTimer timer =
        new HashedWheelTimer(Timers.threads(), 1, TimeUnit.MILLISECONDS, 512);

    public Object schedule(long nanos, Runnable callback) {
        return timer.newTimeout(timeout -> callback.run(), nanos, TimeUnit.NANOSECONDS);
    }

    public boolean cancel(Object handle) {
        return ((Timeout) handle).cancel();
    }

    public void stop() {
        timer.stop();
    }
}
