// The guided tour: what each scenario teaches, in a sentence or two.
//
// A lesson begins with its timers scheduled; its `advance`s and the steps between them follow the visitor's clock.
// `[file, [title, text] in English, [title, text] in Chinese]`.

import { SCENARIOS } from "./scenarios.js";
import { Story } from "./story.js";

export const LESSONS = [
  ["examples/01-one-wheel",
    ["One ring", "A wheel is a ring of slots and a hand that moves one slot a tick. A timer due in 2 waits two " +
      "slots ahead; when the hand comes, it fires. Press Step."],
    ["单层时间轮", "时间轮是一圈槽，指针每个刻度前进一个槽。还有 2 个刻度到期的定时器放在前方第二个槽里，指针走到就触发。按“单步”看看。"]],
  ["examples/02-slot-reuse",
    ["Slots are used again", "The hand has passed slot 1, so slot 1 is free for the next turn: a timer due at 21 " +
      "waits there. Nothing is moved, only counted modulo 20."],
    ["槽循环复用", "指针已经走过 1 号槽，这个槽就归下一圈使用：在 21 到期的定时器就放在这里。什么都不用搬，到期时刻对 20 取模就是槽号。"]],
  ["examples/08-first-wheel-edge",
    ["The edge of the first ring", "At 0, a timer due at 20 is a full turn away and does not fit the first ring. " +
      "At 1 it is 19 away, and does: in slot 0. The ring counts what is left, not what the clock says."],
    ["第一层的边界", "时刻 0 时，20 到期的定时器还差一整圈，第一层放不下。到时刻 1 只差 19，就放得下了：0 号槽。由剩余时间决定，与时钟读数无关。"]],
  ["examples/03-overflow-and-back",
    ["Up, and down again", "22 ticks do not fit a ring of 20. The second ring takes the timer: each of its slots " +
      "stands for a whole turn of the first. When that slot begins, at 20, the timer cascades: it moves down."],
    ["进入溢出轮，再降级", "还差 22 个刻度，20 个槽的第一层放不下，于是放进第二层，也就是溢出轮：它的一个槽等于第一层的一整圈。到 20 时这个槽开始，定时器降级到第一层。"]],
  ["examples/04-second-wheel",
    ["A slot with two ranges", "The hand is in L2[0], which still stands for 2 to 19: these are on the first " +
      "ring already. So the rest of the slot is free for the next turn: 400 and 401. B, due at 401, is there."],
    ["一个槽，两段时间", "指针在 L2[0] 上。这个槽此时代表 2 到 19，而这些定时器都已在第一层，槽就空了出来，可供下一圈的 400 和 401 使用：401 到期的 B 就放在这里。"]],
  ["examples/05-capacity",
    ["How far the rings reach", "Two rings of 20 hold 0 to 399, three hold 0 to 7999, and each further ring " +
      "twenty times as much. A ring is made when a timer first needs it."],
    ["各层能放多远", "每层 20 个槽，两层可放 0 到 399，三层可放到 7999，每加一层，范围扩大到 20 倍。某一层要等到有定时器用到时才创建。"]],
  ["examples/06-empty-ticks-tick",
    ["Waking up for nothing", "One timer, 400 away. A driver that wakes at every tick wakes 399 times for " +
      "nothing. Play it, then switch the drive to slot or due: the same run, counted again."],
    ["空唤醒有多少次", "只有一个定时器，400 个刻度之后到期。驱动线程如果每个刻度都醒来，就有 399 次空唤醒。先播放，再把驱动改成“槽”或“到期”：同样的过程，重新计数。"]],
  ["examples/07-three-levels-tick",
    ["Three rings, three drives", "450 cascades twice, at 400 and at 440. Driven by tick that is 449 empty " +
      "wakes; by slot only those two; by due none, because the wheel knows its next due time exactly."],
    ["三层，三种驱动方式", "450 到期的定时器降级两次：在 400 和 440。按刻度驱动有 449 次空唤醒，按槽驱动只有这两次，按到期驱动一次也没有：时间轮知道下一次到期的准确时刻。"]],
  ["examples/09-clock-face",
    ["A clock face", "Seconds, minutes, hours: 60, 60 and 24 slots. A timer 1 h 30 min 20 s away waits on the " +
      "hour ring, then at minute 30, then at second 20."],
    ["钟面", "时、分、秒三层，分别有 24、60、60 个槽。1 小时 30 分 20 秒后到期的定时器先在小时层等待，再降级到分钟层的 30 号槽，最后到秒层的 20 号槽。"]],
  ["examples/10-clock-face-placement",
    ["Each on its own hand", "58 s, 10 min 20 s, 3 h 20 min 18 s: the time that is left chooses the ring. Two of " +
      "these share a slot and part when it cascades."],
    ["各在其层", "58 秒、10 分 20 秒、3 小时 20 分 18 秒：放在哪一层由剩余时间决定。其中两个定时器同在一个槽里，降级时才分开。"]],
  ["examples/17-two-levels-at-once",
    ["Two rings at one moment", "At 3600 a slot of the hours and a slot of the seconds begin together. First " +
      "everything cascades, then everything due fires: nothing is a turn late."],
    ["两层同时开始", "时刻 3600，小时层和秒层各有一个槽同时开始。先完成所有降级，再触发所有到期的定时器：没有一个会晚一圈。"]],
  ["examples/11-a-hundred-years",
    ["A hundred years", "609 slots in five rings hold every second of a hundred years. Press Next event: time " +
      "that passes costs nothing."],
    ["一百年", "五层共 609 个槽，放得下一百年里的每一秒。按“下一事件”：时间流逝本身没有开销。"]],
  ["examples/12-hashed-rounds",
    ["Rounds", "A hashed wheel has one ring only. Timers of many turns share a slot, and the small number tells " +
      "them apart: how many rounds are still to go. Watch it count down."],
    ["轮次", "哈希时间轮只有一层。要转不同圈数才到期的定时器放在同一个槽里，靠轮次区分：标在旁边的小数字就是剩余轮次。看着它倒数。"]],
  ["examples/13-hashed-day",
    ["A ring of a day", "86 400 slots, one for each second of a day. Two days and ten hours are two rounds and a " +
      "slot. The ring is large, the arithmetic is the same."],
    ["一天转一圈", "86 400 个槽，一天里每秒一个。两天零十小时就是两个轮次，外加一个槽号。轮子很大，算法不变。"]],
  ["examples/14-cancel",
    ["Cancel", "A cancelled timer never fires, and cancelling it again says no (ok: false in the log). Most " +
      "timers end like this: the answer came in time."],
    ["取消", "取消了的定时器绝不会触发；再取消一次会得到否定的答复（日志里 ok 为 false）。多数定时器都是这样结束的：响应按时到了。"]],
  ["examples/16-cancel-above",
    ["Cancelled far away", "A and B share a slot of the hour ring. A is cancelled there and leaves nothing " +
      "behind: nothing to cascade, no wake."],
    ["在高层取消", "A 和 B 在小时层的同一个槽里。A 还在那里就被取消了，什么也不会留下：不需要降级，也不会唤醒。"]],
  ["examples/15-backoff",
    ["Timers that start timers", "A retry that backs off: each attempt starts the next one, 2, 4, 8 and 16 " +
      "later. A callback may do whatever the program may."],
    ["定时器再启动定时器", "退避重试：每次尝试都启动下一次，间隔 2、4、8、16。程序能做的事，回调都能做。"]],
  ["examples/19-every",
    ["A fixed rate", "A repeating timer counts from its due time and not from when somebody got round to it, so " +
      "it never drifts: 5, 12, 19, 26."],
    ["固定频率", "重复定时器从上一次的到期时刻起算，而不是从实际处理的时刻起算，所以不会漂移：5、12、19、26。"]],
  ["examples/18-tick-rounds-up",
    ["Never early", "With a tick of 10, a deadline between two ticks waits for the later one: less than a tick " +
      "late, and never early."],
    ["绝不提前", "刻度为 10 时，到期时间落在两个刻度之间，就等到后一个刻度触发：晚不到一个刻度，绝不提前。"]],
  ["examples/20-stop",
    ["Limits, and the end", "At most 3 may be pending here: d is rejected. When the engine stops, what did not " +
      "fire is handed back by name. Nothing is lost silently."],
    ["上限与停止", "这里最多允许 3 个待触发的定时器，所以 d 被拒绝。引擎停止时，没有触发的定时器按名称逐个交还，不会悄悄丢失。"]],
  [burst,
    ["A burst", "80 timers of one slot are due at the same tick, and a pass may fire 20: four passes at one " +
      "stop. A crowd cannot hold up the rest for longer than a pass."],
    ["扎堆到期", "80 个定时器在同一个槽里，同一刻度到期，而一趟最多触发 20 个：在这个时刻要走四趟。到期的再多，其他定时器最多也只等一趟。"]],
  ["differs/due-401-at-clock-2",
    ["Others say: 401 goes to the third ring", "Kafka aligns the clock of each ring to its slots, and puts 401 " +
      "on ring three. Counted from the hand, 399 is less than 400: there is room on ring two."],
    ["有资料说：401 放第三层", "Kafka 让每一层的时钟对齐到槽的起点，于是 401 放进第三层。从指针算起只差 399，小于 400：第二层放得下。"]],
  ["differs/delay-21-at-clock-1",
    ["Others say: 21 goes to slot 0", "A well-known article puts a delay of 21 in slot 0 of the first ring, " +
      "where it would fire at 20 or 40. It is due at 22, and waits on ring two."],
    ["有资料说：21 放 0 号槽", "一篇流传很广的文章把延迟 21 的定时器放进第一层的 0 号槽，那样会在 20 或 40 触发。它 22 到期，应该放在第二层。"]],
  ["differs/exactly-one-turn",
    ["Exactly one turn", "A delay of 20 on a ring of 20 would be in the slot under the hand: fired at once, or a " +
      "turn late. It belongs to the second ring."],
    ["正好一圈", "每层 20 个槽，延迟 20：按第一层算，正好落在指针所在的槽，要么立刻触发，要么晚一圈。它应该放在第二层。"]],
  ["differs/exactly-one-turn-hashed",
    ["Exactly one turn, hashed", "On a hashed ring it is the slot under the hand, with one round to go. When the " +
      "hand comes back, that round is over and it fires."],
    ["哈希时间轮上正好一圈", "在哈希时间轮上，它就放在指针所在的槽里，剩余轮次为 1。指针转回来，这一轮结束，触发。"]],
  ["differs/rounding-up",
    ["Rounding down is early", "With a tick of 10, a deadline of 12 that rounds down fires at 10, too early. A " +
      "deadline rounds up and a clock reading rounds down."],
    ["向下取整就会提前", "刻度为 10 时，12 到期的定时器若向下取整，会在 10 触发：提前了。所以到期时间向上取整，时钟读数向下取整。"]],
  [crowd,
    ["Ten thousand timers", "Every dot is a timer of the real wheel behind this page. Press Play, and make it " +
      "faster: starting, cancelling and firing one costs the same, however many there are."],
    ["一万个定时器", "每个点都是页面背后真实时间轮里的一个定时器。按“播放”，再调快速度：不管有多少个，启动、取消、触发一个的开销都一样。"]],
];

// The story of a lesson: the steps that schedule its timers, and the rest as its script.
export function lessonStory(number) {
  const [source] = LESSONS[number];
  const scenario = typeof source === "function" ? source() : SCENARIOS[source];
  const { steps, ...rest } = scenario;
  const first = steps.findIndex((step) => "schedule" in step);
  const next = steps.findIndex((step, i) => i > first && "advance" in step);
  const end = next < 0 ? steps.length : next;
  return new Story({ ...rest, steps: steps.slice(0, end), script: steps.slice(end), lesson: number });
}

function burst() {
  const start = Array.from({ length: 80 }, (_, i) => ({ schedule: `t${i}`, delay: 45 }));
  const wheel = { kind: "hierarchical", slots: [20, 20] };
  return { name: "80 timers due at once, 20 a pass", wheel, drive: "bucket", budget: 20,
    steps: [{ advance: 3 }, ...start, { schedule: "A", delay: 44 }, { schedule: "Z", delay: 46 }, { advance: 60 }] };
}

// A small pseudo-random generator: the same timers in every browser.
export function crowd(count = 10_000) {
  let seed = 20;
  const random = (below) => {
    seed = (seed * 48271) % 2147483647;
    return Math.floor((seed / 2147483647) * below);
  };
  const steps = Array.from({ length: count }, (_, i) => ({ schedule: `t${i}`, delay: 1 + random(7999) }));
  const wheel = { kind: "hierarchical", slots: [20, 20, 20] };
  return { name: `${count} timers`, wheel, drive: "tick", steps };
}
