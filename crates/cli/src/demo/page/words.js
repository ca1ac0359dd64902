// The words of the page, in English and in Chinese: one table, chosen by the browser, switchable.
//
// An element with `data-w` gets its text from here, one with `data-label` its label.

const WORDS = {
  tagline: ["timing wheels that you can watch", "看得见的时间轮"],
  tour: ["Guided tour", "导览"],
  previous: ["Back", "上一课"],
  following: ["Next lesson", "下一课"],
  chooseLesson: ["Choose a lesson", "选择一课"],
  free: ["Free play", "自由摆弄"],
  freeText: ["Your own wheel: add timers by clicking slots or by typing, and let time run.",
    "你自己的时间轮：点击槽或输入来添加定时器，然后让时间走起来。"],
  play: ["Play", "播放"],
  pause: ["Pause", "暂停"],
  step: ["Step", "单步"],
  next: ["Next event", "下一事件"],
  restart: ["Restart", "重来"],
  speed: ["Speed", "速度"],
  speedHelp: ["Units of time in a second", "每秒走过的时间单位"],
  clock: ["clock", "时钟"],
  asleep: ["asleep until", "睡到"],
  drive: ["Drive", "驱动"],
  driveTick: ["tick", "刻度"],
  driveSlot: ["slot", "槽"],
  driveDue: ["due", "到期"],
  driveHelp: ["Where the driver wakes up: at every tick, where an occupied slot begins, or only where a timer is " +
    "due. The same run, counted again.",
    "驱动在哪里醒来：每个刻度、有定时器的槽开始时、或只在到期时。同一过程，重新计数。"],
  wakes: ["wakes", "唤醒"],
  empty: ["empty wakes", "白醒"],
  pending: ["pending", "待触发"],
  fired: ["fired", "已触发"],
  cascades: ["handed down", "降层"],
  add: ["Add a timer", "添加定时器"],
  addButton: ["Add", "添加"],
  name: ["Name", "名称"],
  delay: ["due in", "多久后到期"],
  every: ["then every", "之后每隔"],
  never: ["never", "不重复"],
  timers: ["Timers", "定时器"],
  noTimers: ["No timer is pending. Click a slot to add one.", "没有待触发的定时器。点击一个槽来添加。"],
  due: ["due", "到期"],
  left: ["left", "剩余"],
  place: ["place", "位置"],
  rounds: ["rounds", "圈数"],
  cancel: ["Cancel", "取消"],
  move: ["Move", "移动"],
  moveTo: ["to be due in", "改为多久后到期"],
  moveHelp: ["or click a slot to move it there", "或点击一个槽，把它移过去"],
  close: ["Done", "完成"],
  more: ["more", "个未列出"],
  wheel: ["Wheel", "时间轮"],
  geometry: ["Geometry", "形状"],
  other: ["other…", "其他…"],
  hierarchical: ["hierarchical", "分层"],
  hashed: ["hashed", "哈希"],
  kind: ["Kind", "种类"],
  slots: ["Slots a level", "每层槽数"],
  tick: ["Tick", "刻度"],
  start: ["Start", "起始"],
  make: ["Make it", "建立"],
  ranges: ["Slots and their ranges", "各槽代表的时间"],
  slot: ["slot", "槽"],
  range: ["stands for", "代表"],
  level: ["level", "层"],
  log: ["Event log", "事件日志"],
  logHelp: ["the lines that tourbillon replay prints", "与 tourbillon replay 的输出一行不差"],
  save: ["Save as scenario", "存为场景"],
  link: ["Copy link", "复制链接"],
  copied: ["The link is copied: it brings back exactly this.", "链接已复制，打开即可还原现状。"],
  linkIs: ["The link is in the address bar.", "链接在地址栏里。"],
  badLink: ["This link could not be read; here is the tour instead.", "无法读取这个链接，改为打开导览。"],
  lost: ["Connection lost. Trying again… (is tourbillon demo still running?)",
    "连接断开，正在重试……（tourbillon demo 还在运行吗？）"],
  back: ["Connected again, nothing is lost.", "已重新连接，什么也没丢。"],
  look: ["Touch or hover a slot, or use the arrow keys", "触摸或指向一个槽，或用方向键"],
  now: ["now", "现在"],
  then: ["used again for", "又用于"],
  andEvery: ["and every", "及其后每"],
  click: ["click to add a timer", "点击添加定时器"],
  fullTurn: ["The hand is here: a timer a full turn away does not fit this ring.",
    "指针就在这里：再过一整圈的定时器，这一环放不下。"],
  aSlot: ["a slot", "每格"],
  above: ["above, not drawn", "更高层（未画出）"],
  theme: ["Light or dark", "明暗"],
  language: ["Language", "语言"],
  dial: ["The rings. Arrow keys go from slot to slot and from ring to ring; Enter adds a timer or chooses the " +
    "one that is there; Delete cancels the chosen one.",
    "时间轮的各环。方向键在槽与环之间移动；回车添加定时器或选中那里的定时器；删除键取消选中的定时器。"],
  tooLong: ["the run has grown too long: save it, and begin anew", "过程太长了：请先保存，再重新开始"],
  wrong: ["Not done", "未执行"],
};

// The first of the visitor's languages that we speak.
export let language = navigator.languages.find((tag) => /^(zh|en)/.test(tag))?.startsWith("zh") ? 1 : 0;

export const word = (key) => WORDS[key][language];

export function speak(number) {
  language = number;
  document.documentElement.lang = ["en", "zh-Hans"][language];
  for (const element of document.querySelectorAll("[data-w]")) element.textContent = word(element.dataset.w);
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", word(element.dataset.label));
    element.title = word(element.dataset.label);
  }
}
