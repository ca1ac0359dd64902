// The texts of the page, in English and in Chinese. States have the same names as in the API.

import { language, useWords, word } from "./shared.js";

const WORDS = {
  timers: ["Timers", "定时器"],
  tour: ["Tour", "导览"],
  token: ["Token", "令牌"],
  useToken: ["Use", "使用"],
  forget: ["Forget the token", "忘记令牌"],
  language: ["Language", "语言"],
  theme: ["Light or dark", "明暗"],
  lost: ["The server does not answer. Retrying…", "服务器没有应答，正在重试……"],
  back: ["The server answers again.", "服务器已恢复应答。"],
  wrong: ["Not done", "未执行"],
  maybe: ["The answer was lost: the change may or may not have been made. Look before you try again.",
    "没有收到应答：操作可能已经执行，也可能没有。请先查看再重试。"],
  badToken: ["The server does not know this token.", "服务器不认识这个令牌。"],
  needToken: ["This server requires a token. It is kept until you close the tab.",
    "此服务器需要令牌。令牌只保留到关闭此标签页。"],
  damaged: ["Part of the store cannot be read: the server's log names it. Other timers are not affected.",
    "有一部分存储无法读取，服务器日志里写明了是哪一部分。其他定时器不受影响。"],
  offer: ["Nothing is scheduled yet", "还没有任何定时器"],
  offerText: ["Schedule a few timers to play with, in a queue of their own. The first one is due in five seconds: " +
    "this page receives it, as a worker would, and you see it happen.",
    "在一个单独的队列里新建几个定时器试试看。第一个五秒后到期：本页面会像消费者一样取走它，全过程都看得见。"],
  offerButton: ["Schedule a few timers", "新建几个定时器"],
  playing: ["Scheduled. The first one is due in five seconds.", "已新建。第一个五秒后到期。"],
  played: ["was handed to this page, and acknowledged.", "已投递给本页面，并已确认。"],
  queues: ["Queues", "队列"],
  filter: ["Filter by name", "按名称筛选"],
  noQueue: ["There is no queue yet: the first timer creates it.", "还没有队列：第一个定时器会创建它。"],
  hidden: ["more queues: filter by name to find them", "个队列未显示：请按名称筛选"],
  queue: ["queue", "队列"],
  scheduled: ["scheduled", "待触发"],
  due: ["due", "已到期"],
  delivering: ["delivering", "投递中"],
  dead: ["dead", "死信"],
  done: ["done", "已完成"],
  cancelled: ["cancelled", "已取消"],
  handed: ["handed", "已投递"],
  acked: ["acked", "已确认"],
  failed: ["failed", "失败"],
  aSecond: ["per sec", "每秒"],
  late: ["late p99", "延迟 p99"],
  failures: ["failed/min", "失败/分"],
  failuresHelp: ["Attempts that failed in the last minute, since this page was opened",
    "打开本页面以来，最近一分钟内失败的尝试次数"],
  oldest: ["oldest due", "最早到期"],
  next: ["next", "下一个"],
  now: ["now", "现在"],
  pause: ["Pause", "暂停"],
  resume: ["Resume", "恢复"],
  paused: ["paused", "已暂停"],
  coming: ["What is coming", "即将到期"],
  ofAll: ["all queues", "全部队列"],
  ofLargest: ["the largest queues", "最大的几个队列"],
  minutes: ["10 minutes", "10 分钟内"],
  hour: ["hour", "一小时内"],
  day: ["day", "一天内"],
  month: ["30 days", "30 天内"],
  year: ["year", "一年内"],
  close: ["Close", "关闭"],
  show: ["show", "显示"],
  all: ["what comes next", "接下来的"],
  prefix: ["key prefix", "键前缀"],
  key: ["key", "键"],
  state: ["state", "状态"],
  when: ["when", "时间"],
  nextAttempt: ["next attempt", "下次尝试"],
  attempt: ["attempt", "尝试"],
  lastError: ["last error", "最近的错误"],
  noTimer: ["No timer matches.", "没有符合条件的定时器。"],
  more: ["More", "更多"],
  retryAll: ["Retry all dead", "重试全部死信"],
  retried: ["timers are due again.", "个定时器重新到期。"],
  runNow: ["Run now", "立即运行"],
  retry: ["Retry now", "立即重试"],
  move: ["Move", "改期"],
  moveIn: ["to be due in", "改为多久后到期"],
  cancel: ["Cancel", "取消"],
  sure: ["Really cancel?", "确定取消？"],
  gone: ["There is no timer with this key.", "没有键为此值的定时器。"],
  dueAt: ["due", "到期"],
  rhythm: ["repeats", "周期"],
  every: ["every", "每"],
  occurrence: ["occurrence", "第几次"],
  created: ["created", "创建于"],
  generation: ["generation", "代次"],
  webhook: ["webhook", "Webhook"],
  payload: ["payload", "载荷"],
  schedule: ["Schedule a timer", "新建定时器"],
  scheduleButton: ["Schedule", "新建"],
  scheduledAs: ["is due", "到期："],
  assigned: ["automatic", "自动分配"],
  in: ["in", "多久后"],
  happens: ["Events", "事件"],
  sampled: ["the latest: there are more than fit here", "只显示最新的：事件太多"],
  quiet: ["No event since this page was opened.", "打开页面以来还没有事件。"],
  ago: ["{} ago", "{}前"],
  inThe: ["in {}", "{}后"],
  units: [["ms", "s", "m", "h", "d"], ["毫秒", "秒", "分", "小时", "天"]],
};
useWords(WORDS);

export { language, word };

const STEPS = [1, 1000, 60_000, 3_600_000, 86_400_000];

// A duration in its two largest units.
export function lengthOf(millis) {
  const units = word("units");
  let at = STEPS.findLastIndex((step) => millis >= step);
  if (at <= 0) return `${Math.round(millis)}${units[0]}`;
  const first = Math.floor(millis / STEPS[at]);
  const second = Math.floor((millis % STEPS[at]) / STEPS[at - 1]);
  const text = `${first}${units[at]}`;
  return at > 1 && second ? `${text} ${second}${units[at - 1]}` : text;
}

// The distance of a moment from now, by the server's clock.
export function far(moment, now) {
  const millis = Date.parse(moment) - now;
  return word(millis < 0 ? "ago" : "inThe").replace("{}", lengthOf(Math.abs(millis)));
}

export const count = (number) => number.toLocaleString(["en", "zh-Hans"][language]);

// A duration of the API, such as "1h30m", as text.
export const duration = (text) => lengthOf(millisOf(text));

export function millisOf(text) {
  const steps = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
  return [...text.matchAll(/(\d+)(ms|s|m|h|d|w)/g)].reduce((sum, [, n, unit]) => sum + n * steps[unit], 0);
}
