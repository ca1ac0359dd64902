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
    ["一个环", "时间轮就是一圈槽，指针每个刻度走一格。2 之后到期的定时器就在前面第二格等着，指针一到就触发。按“单步”试试。"]],
  ["examples/02-slot-reuse",
    ["Slots are used again", "The hand has passed slot 1, so slot 1 is free for the next turn: a timer due at 21 " +
      "waits there. Nothing is moved, only counted modulo 20."],
    ["槽会重复使用", "指针已走过 1 号槽，它就留给下一圈：21 到期的定时器就放在那里。不搬动任何东西，只是对 20 取模。"]],
  ["examples/08-first-wheel-edge",
    ["The edge of the first ring", "At 0, a timer due at 20 is a full turn away and does not fit the first ring. " +
      "At 1 it is 19 away, and does: in slot 0. The ring counts what is left, not what the clock says."],
    ["第一环的边界", "在时刻 0，20 到期正好差一整圈，第一环放不下。到时刻 1 只差 19，就放得下：0 号槽。看的是剩余时间，不是时钟读数。"]],
  ["examples/03-overflow-and-back",
    ["Up, and down again", "22 ticks do not fit a ring of 20. The second ring takes the timer: each of its slots " +
      "stands for a whole turn of the first. When that slot begins, at 20, the timer cascades: it moves down."],
    ["先上去，再下来", "22 个刻度在 20 格的环里放不下，于是放进第二层的溢出轮：那里的一格等于第一层的一整圈。到 20 时这一格开始，定时器降级到第一层。"]],
  ["examples/04-second-wheel",
    ["A slot with two ranges", "The hand is in L2[0], which still stands for 2 to 19: these are on the first " +
      "ring already. So the rest of the slot is free for the next turn: 400 and 401. B, due at 401, is there."],
    ["一个槽，两段时间", "指针在 L2[0] 里，它还代表 2 到 19，而这些已经在第一层了。所以这个槽空出来给下一圈用：400 和 401。401 到期的 B 就在那里。"]],
  ["examples/05-capacity",
    ["How far the rings reach", "Two rings of 20 hold 0 to 399, three hold 0 to 7999, and each further ring " +
      "twenty times as much. A ring is made when a timer first needs it."],
    ["能装多远", "两层 20 格能装 0 到 399，三层能装到 7999，每加一层就是二十倍。某一层在第一次用到时才建立。"]],
  ["examples/06-empty-ticks-tick",
    ["Waking up for nothing", "One timer, 400 away. A driver that wakes at every tick wakes 399 times for " +
      "nothing. Play it, then switch the drive to slot or due: the same run, counted again."],
    ["空唤醒有多少次", "只有一个 400 之后的定时器。每个刻度都醒来的驱动会空唤醒 399 次。先播放，再把驱动换成“槽”或“到期”：同一过程重新计数。"]],
  ["examples/07-three-levels-tick",
    ["Three rings, three drives", "450 cascades twice, at 400 and at 440. Driven by tick that is 449 empty " +
      "wakes; by slot only those two; by due none, because the wheel knows its next due time exactly."],
    ["三层，三种驱动", "450 会降级两次：在 400 和 440。按刻度驱动要空唤醒 449 次，按槽只有这两次，按到期则一次也没有：时间轮确切知道下一个到期时刻。"]],
  ["examples/09-clock-face",
    ["A clock face", "Seconds, minutes, hours: 60, 60 and 24 slots. A timer 1 h 30 min 20 s away waits on the " +
      "hour ring, then at minute 30, then at second 20."],
    ["钟面", "秒、分、时：60、60、24 格。1 小时 30 分 20 秒之后的定时器先在小时环上等，再到第 30 分，最后到第 20 秒。"]],
  ["examples/10-clock-face-placement",
    ["Each on its own hand", "58 s, 10 min 20 s, 3 h 20 min 18 s: the time that is left chooses the ring. Two of " +
      "these share a slot and part when it cascades."],
    ["各有各的指针", "58 秒、10 分 20 秒、3 小时 20 分 18 秒：剩余时间决定放在哪一层。其中两个同在一槽，降级时才分开。"]],
  ["examples/17-two-levels-at-once",
    ["Two rings at one moment", "At 3600 a slot of the hours and a slot of the seconds begin together. First " +
      "everything cascades, then everything due fires: nothing is a turn late."],
    ["同一时刻的两层", "3600 时，小时环和秒环各有一格同时开始。先全部降级，再触发所有到期的：谁也不会晚一圈。"]],
  ["examples/11-a-hundred-years",
    ["A hundred years", "609 slots in five rings hold every second of a hundred years. Press Next event: time " +
      "that passes costs nothing."],
    ["一百年", "五层共 609 格，装得下一百年里的每一秒。按“下一事件”：流逝的时间不花任何代价。"]],
  ["examples/12-hashed-rounds",
    ["Rounds", "A hashed wheel has one ring only. Timers of many turns share a slot, and the small number tells " +
      "them apart: how many rounds are still to go. Watch it count down."],
    ["轮次", "哈希时间轮只有一个环。不同圈的定时器挤在同一槽里，靠旁边的小数字区分：剩余轮次。看它倒数。"]],
  ["examples/13-hashed-day",
    ["A ring of a day", "86 400 slots, one for each second of a day. Two days and ten hours are two rounds and a " +
      "slot. The ring is large, the arithmetic is the same."],
    ["一天一环", "86 400 格，一天里每秒一格。两天零十小时就是两个轮次加一个槽。环很大，算法一样。"]],
  ["examples/14-cancel",
    ["Cancel", "A cancelled timer never fires, and cancelling it again says no (ok: false in the log). Most " +
      "timers end like this: the answer came in time."],
    ["取消", "取消了的定时器绝不触发；再取消一次会回答“否”（日志里 ok 为 false）。多数定时器都这样结束：回应及时到了。"]],
  ["examples/16-cancel-above",
    ["Cancelled far away", "A and B share a slot of the hour ring. A is cancelled there and leaves nothing " +
      "behind: nothing to cascade, no wake."],
    ["在高层取消", "A 和 B 在小时环的同一槽。A 在那里就被取消，什么也不留下：没有需要降级的，也不会唤醒。"]],
  ["examples/15-backoff",
    ["Timers that start timers", "A retry that backs off: each attempt starts the next one, 2, 4, 8 and 16 " +
      "later. A callback may do whatever the program may."],
    ["定时器启动定时器", "退避重试：每次尝试启动下一次，相隔 2、4、8、16。回调里能做程序能做的任何事。"]],
  ["examples/19-every",
    ["A fixed rate", "A repeating timer counts from its due time and not from when somebody got round to it, so " +
      "it never drifts: 5, 12, 19, 26."],
    ["固定频率", "重复定时器从到期时刻算起，而不是从处理的那一刻，所以不会漂移：5、12、19、26。"]],
  ["examples/18-tick-rounds-up",
    ["Never early", "With a tick of 10, a deadline between two ticks waits for the later one: less than a tick " +
      "late, and never early."],
    ["绝不提前", "刻度为 10 时，落在两刻之间的到期时间等到后一刻：最多晚不到一个刻度，绝不提前。"]],
  ["examples/20-stop",
    ["Limits, and the end", "At most 3 may be pending here: d is rejected. When the engine stops, what did not " +
      "fire is handed back by name. Nothing is lost silently."],
    ["上限与停止", "这里最多 3 个待触发：d 被拒绝。引擎停止时，没触发的按名字交还，不会悄悄丢掉。"]],
  [burst,
    ["A burst", "80 timers of one slot are due at the same tick, and a pass may fire 20: four passes at one " +
      "stop. A crowd cannot hold up the rest for longer than a pass."],
    ["扎堆到期", "同一槽里 80 个定时器同时到期，而一趟最多触发 20 个：一次停留分四趟。扎堆的最多让别人等一趟。"]],
  ["differs/due-401-at-clock-2",
    ["Others say: 401 goes to the third ring", "Kafka aligns the clock of each ring to its slots, and puts 401 " +
      "on ring three. Counted from the hand, 399 is less than 400: there is room on ring two."],
    ["别处说：401 放第三层", "Kafka 把每层的时钟对齐到槽，于是 401 放到第三层。从指针算起只差 399，小于 400：第二层放得下。"]],
  ["differs/delay-21-at-clock-1",
    ["Others say: 21 goes to slot 0", "A well-known article puts a delay of 21 in slot 0 of the first ring, " +
      "where it would fire at 20 or 40. It is due at 22, and waits on ring two."],
    ["别处说：21 放 0 号槽", "一篇有名的文章把延迟 21 放进第一环的 0 号槽，那样会在 20 或 40 触发。它 22 到期，应在第二层等。"]],
  ["differs/exactly-one-turn",
    ["Exactly one turn", "A delay of 20 on a ring of 20 would be in the slot under the hand: fired at once, or a " +
      "turn late. It belongs to the second ring."],
    ["正好一圈", "20 格的环上延迟 20，会落在指针所在的槽：要么立刻触发，要么晚一圈。它属于第二层。"]],
  ["differs/exactly-one-turn-hashed",
    ["Exactly one turn, hashed", "On a hashed ring it is the slot under the hand, with one round to go. When the " +
      "hand comes back, that round is over and it fires."],
    ["哈希环上正好一圈", "在哈希环上就是指针所在的槽，剩余轮次为 1。指针转回来，这一轮结束，触发。"]],
  ["differs/rounding-up",
    ["Rounding down is early", "With a tick of 10, a deadline of 12 that rounds down fires at 10, too early. A " +
      "deadline rounds up and a clock reading rounds down."],
    ["向下取整会提前", "刻度为 10 时，把 12 向下取整会在 10 触发：提前了。到期时间向上取整，时钟读数向下取整。"]],
  [crowd,
    ["Ten thousand timers", "Every dot is a timer of the real wheel behind this page. Press Play, and make it " +
      "faster: starting, cancelling and firing one costs the same, however many there are."],
    ["一万个定时器", "每个点都是页面背后真实时间轮里的一个定时器。按“播放”，再加速：不管有多少个，启动、取消、触发一个的代价都一样。"]],
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
