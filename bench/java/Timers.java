// The timers of the JVM under the workloads of `bench timer`: java Timers SERVICE ROW TIMERS THREADS QUICK.
//
// Prints a line `figure value` for each figure. The first rounds warm the compiler up and are not counted; of the
// others the median is printed. A service is a class with the interface below: Jdk here, Netty and Kafka in files of
// their own, because they are compiled only where their jars are.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.LongAdder;

interface Service {
    /** Schedules a callback after a delay in nanoseconds; returns an action that cancels it. */
    Object schedule(long nanos, Runnable callback);

    boolean cancel(Object handle);

    void stop();
}

final class Jdk implements Service {
    private final ScheduledThreadPoolExecutor pool =
        new ScheduledThreadPoolExecutor(Runtime.getRuntime().availableProcessors(), Timers.threads());

    Jdk() {
        pool.setRemoveOnCancelPolicy(true);
    }

    public Object schedule(long nanos, Runnable callback) {
        return pool.schedule(callback, nanos, TimeUnit.NANOSECONDS);
    }

    public boolean cancel(Object handle) {
        return ((Future<?>) handle).cancel(false);
    }

    public void stop() {
        pool.shutdownNow();
    }
}

public final class Timers {
    private static final int WARM_UP = 2;
    private static final int ROUNDS = 3;
    private static final long MS = 1_000_000L;

    /** Threads by whose name their wake-ups are found. */
    static ThreadFactory threads() {
        return work -> {
            Thread thread = new Thread(work, "timer-peer");
            thread.setDaemon(true);
            return thread;
        };
    }

    public static void main(String[] words) throws Exception {
        String service = words[0];
        int timers = Integer.parseInt(words[2]);
        int threads = Integer.parseInt(words[3]);
        boolean quick = Boolean.parseBoolean(words[4]);
        switch (words[1]) {
            case "trace" -> trace(service);
            case "pair" -> pair(service, timers, threads, quick ? 500_000 : 1_000_000);
            case "fire" -> fire(service);
            case "idle" -> idle(service, quick ? 2 : 10);
            case "lateness" -> lateness(service, quick ? 100_000 : 200_000);
            default -> throw new IllegalArgumentException(words[1]);
        }
        System.out.flush();
        // Pools and wheels may have threads that are not daemons.
        Runtime.getRuntime().halt(0);
    }

    private static Service make(String name) throws Exception {
        return (Service) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    private static void tell(String figure, double value) {
        System.out.println(figure + " " + value);
    }

    private static void sleepUntil(long moment) throws InterruptedException {
        Thread.sleep(Math.max(0, (moment - System.nanoTime()) / MS));
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    /** Schedules one and cancels the oldest, on a number of threads at once. */
    private static void pair(String name, int timers, int threads, int pairs) throws Exception {
        Service service = make(name);
        double[] rounds = new double[ROUNDS];
        Object[][] rings = new Object[threads][timers / threads];
        for (int round = -WARM_UP; round < ROUNDS; round++) {
            long[] begin = new long[threads];
            long[] end = new long[threads];
            CyclicBarrier barrier = new CyclicBarrier(threads);
            Thread[] workers = new Thread[threads];
            for (int number = 0; number < threads; number++) {
                int own = number;
                workers[number] = new Thread(() -> {
                    try {
                        SplittableRandom random = new SplittableRandom(own);
                        if (rings[own][0] == null) {
                            turn(service, rings[own], random, rings[own].length);
                        }
                        turn(service, rings[own], random, rings[own].length);
                        barrier.await();
                        begin[own] = System.nanoTime();
                        turn(service, rings[own], random, pairs);
                        end[own] = System.nanoTime();
                        barrier.await();
                    } catch (Exception wrong) {
                        wrong.printStackTrace();
                        System.exit(1);
                    }
                });
                workers[number].start();
            }
            for (Thread worker : workers) {
                worker.join();
            }
            long first = Arrays.stream(begin).min().getAsLong();
            long last = Arrays.stream(end).max().getAsLong();
            if (round >= 0) {
                rounds[round] = (double) (last - first) / ((long) threads * pairs);
            }
        }
        tell("pair", median(rounds));
    }

    private static final LongAdder FIRED = new LongAdder();

    private static void turn(Service service, Object[] ring, SplittableRandom random, int pairs) {
        int oldest = 0;
        for (int pair = 0; pair < pairs; pair++) {
            long payload = pair;
            // 60 to 125.5 s, in whole ms: nothing fires before it is cancelled.
            long delay = (60_000 + (random.nextLong() >>> 48)) * MS;
            Object handle = service.schedule(delay, () -> FIRED.add(payload));
            Object old = ring[oldest];
            if (old != null && !service.cancel(old)) {
                throw new IllegalStateException("a timer was lost");
            }
            ring[oldest] = handle;
            oldest = oldest + 1 == ring.length ? 0 : oldest + 1;
        }
    }

    /** CPU time of the process while a million callbacks fire over four seconds. */
    private static void fire(String name) throws Exception {
        fired(name, 200_000, 500 * MS);
        double cpu = fired(name, 1_000_000, 4_000 * MS);
        tell("fire-cpu", cpu);
    }

    private static double fired(String name, int timers, long spread) throws Exception {
        Service service = make(name);
        LongAdder count = new LongAdder();
        SplittableRandom random = new SplittableRandom(1);
        long first = System.nanoTime() + 2_500 * MS;
        for (int timer = 0; timer < timers; timer++) {
            long at = first + random.nextLong(spread);
            service.schedule(at - System.nanoTime(), count::increment);
        }
        if (System.nanoTime() > first) {
            throw new IllegalStateException("it took too long to arm");
        }
        long before = cpu();
        sleepUntil(first + spread);
        long limit = System.nanoTime() + 10_000 * MS;
        while (count.sum() < timers && System.nanoTime() < limit) {
            Thread.sleep(2);
        }
        if (count.sum() != timers) {
            throw new IllegalStateException("it lost timers, or fired some twice");
        }
        double spent = cpu() - before;
        service.stop();
        return spent / timers;
    }

    private static long cpu() {
        var bean = java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean) bean).getProcessCpuTime();
    }

    /** One timer an hour away: what its threads do all the same. */
    private static void idle(String name, int seconds) throws Exception {
        Service service = make(name);
        service.schedule(3_600_000 * MS, () -> FIRED.increment());
        Thread.sleep(500);
        long[] before = used();
        Thread.sleep(seconds * 1000L);
        long[] after = used();
        tell("idle-switches", (double) (after[0] - before[0]) / seconds);
        tell("idle-cpu", (after[1] - before[1]) / 1000.0 / seconds);
    }

    /** Context switches and CPU nanoseconds of the service's own threads. */
    private static long[] used() throws IOException {
        long[] sum = new long[2];
        try (var tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                String comm = Files.readString(task.resolve("comm"));
                if (!comm.startsWith("timer-") && !comm.startsWith("executor-")) {
                    continue;
                }
                for (String line : Files.readAllLines(task.resolve("status"))) {
                    if (line.contains("voluntary_ctxt_switches")) {
                        sum[0] += Long.parseLong(line.split(":")[1].trim());
                    }
                }
                sum[1] += Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[0]);
            }
        }
        return sum;
    }

    /** A deadline every 10 µs; each callback reads the clock. The first run warms up. */
    private static void lateness(String name, int timers) throws Exception {
        late(name, timers);
        long[] late = late(name, timers);
        tell("late-p50", late[(timers + 1) / 2 - 1] / 1000.0);
        tell("late-p99", late[(int) Math.ceil(timers * 0.99) - 1] / 1000.0);
        tell("late-max", late[timers - 1] / 1000.0);
        tell("early-fired", Arrays.stream(late).filter(it -> it < 0).count());
    }

    private static long[] late(String name, int timers) throws Exception {
        Service service = make(name);
        long[] late = new long[timers];
        LongAdder count = new LongAdder();
        long first = System.nanoTime() + 1_250 * MS;
        for (int timer = 0; timer < timers; timer++) {
            int own = timer;
            long at = first + timer * 10_000L;
            service.schedule(at - System.nanoTime(), () -> {
                late[own] = System.nanoTime() - at;
                count.increment();
            });
        }
        long limit = first + timers * 10_000L + 10_000 * MS;
        while (count.sum() < timers && System.nanoTime() < limit) {
            Thread.sleep(5);
        }
        if (count.sum() != timers) {
            throw new IllegalStateException("it lost timers, or fired some twice");
        }
        service.stop();
        Arrays.sort(late);
        return late;
    }

    /** Timers that must fire, each at its moment, and timers that are cancelled before. */
    private static void trace(String name) throws Exception {
        int timers = 4000;
        long grace = 60 * MS;
        // Once to load the classes: what loads them would fire late.
        traced(name, timers, grace);
        long[] counts = traced(name, timers, grace);
        String[] names = {"early", "late", "lost", "ghosts"};
        for (int fault = 0; fault < names.length; fault++) {
            tell(names[fault], counts[fault]);
        }
    }

    private static long[] traced(String name, int timers, long grace) throws Exception {
        Service service = make(name);
        AtomicIntegerArray fired = new AtomicIntegerArray(timers);
        LongAdder[] faults = {new LongAdder(), new LongAdder(), new LongAdder(), new LongAdder()};
        SplittableRandom random = new SplittableRandom(3);
        long first = System.nanoTime() + 50 * MS;
        for (int timer = 0; timer < timers; timer++) {
            int own = timer;
            long at = first + random.nextLong(400 * MS);
            long from = Math.max(at, System.nanoTime());
            service.schedule(at - System.nanoTime(), () -> {
                long now = System.nanoTime();
                if (now < at) {
                    faults[0].increment();
                }
                if (now > from + grace) {
                    faults[1].increment();
                }
                if (fired.incrementAndGet(own) > 1) {
                    faults[3].increment();
                }
            });
            if (random.nextInt(4) == 0) {
                service.cancel(service.schedule(200 * MS, faults[3]::increment));
            }
        }
        sleepUntil(first + 400 * MS + 2 * grace);
        for (int timer = 0; timer < timers; timer++) {
            if (fired.get(timer) == 0) {
                faults[2].increment();
            }
        }
        service.stop();
        return Arrays.stream(faults).mapToLong(LongAdder::sum).toArray();
    }
}
