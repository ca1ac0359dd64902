// The scenarios of the tour: those of the repository's folder `scenarios`, without their expectations. A test compares
// their behaviour.

export const SCENARIOS = {
  "examples/01-one-wheel": {"name": "one wheel of 20: two timers land in their slots and fire",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "A", "delay": 2}, {"advance": 2}, {"schedule": "B", "delay": 8}, {"advance": 10} ]},
  "examples/02-slot-reuse": {"name": "a slot behind the hand is used again for the next turn",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"advance": 2}, {"schedule": "A", "delay": 19}, {"advance": 20}, {"advance": 21} ]},
  "examples/08-first-wheel-edge": {"name":
    "at clock 0 a timer at 20 needs the second wheel, at clock 1 it fits slot 0 of the first",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "A", "at": 20}, {"schedule": "X", "at": 200}, {"advance": 1}, {"schedule": "B", "at": 20},
      {"advance": 20} ]},
  "examples/03-overflow-and-back": {"name": "22 from clock 2 goes up to the second wheel and comes back down",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"advance": 2}, {"schedule": "A", "delay": 22}, {"advance": 19}, {"advance": 20}, {"advance": 24} ]},
  "examples/04-second-wheel": {"name": "350 and 399 from clock 2 both fit the second wheel",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"advance": 2}, {"schedule": "A", "delay": 350}, {"schedule": "B", "delay": 399}, {"advance": 340},
      {"advance": 401} ]},
  "examples/05-capacity": {"name": "two wheels of 20 hold 0 to 399, three hold 0 to 7999",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "a", "delay": 19}, {"schedule": "b", "delay": 20}, {"schedule": "c", "delay": 399},
      {"schedule": "d", "delay": 400}, {"schedule": "e", "delay": 7999}, {"schedule": "f", "delay": 8000},
      {"advance": 8000} ]},
  "examples/06-empty-ticks-tick": {"name": "one timer 400 away, driven by tick: 400 wakes",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "tick",
    "steps": [
      {"schedule": "A", "delay": 400}, {"advance": 400} ]},
  "examples/07-three-levels-tick": {"name": "450 goes down three levels, driven by tick: 450 wakes",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "tick",
    "steps": [
      {"schedule": "A", "delay": 450}, {"advance": 399}, {"advance": 400}, {"advance": 440}, {"advance": 450} ]},
  "examples/09-clock-face": {"name": "1 h 30 min 20 s on a wheel of seconds, minutes and hours",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [60, 60, 24], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "A", "delay": 5420}, {"advance": 3600}, {"advance": 5400}, {"advance": 5420} ]},
  "examples/10-clock-face-placement": {"name": "58 s, 10 min 20 s and 3 h 20 min 18 s each on their own hand",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [60, 60, 12], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "s", "delay": 58}, {"schedule": "m", "delay": 620}, {"schedule": "h", "delay": 12018},
      {"schedule": "hm", "delay": 4230}, {"schedule": "hs", "delay": 3630}, {"advance": 3600}, {"advance": 12018} ]},
  "examples/17-two-levels-at-once": {"name": "a slot of each level begins at the same moment",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [60, 60, 24], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "hour", "delay": 3600}, {"advance": 3590}, {"schedule": "edge", "delay": 10},
      {"schedule": "past", "delay": 11}, {"advance": 3601} ]},
  "examples/11-a-hundred-years": {"name": "609 slots hold a hundred years of seconds",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [60, 60, 24, 365, 100], "start": 0}, "drive": "bucket",
    "steps": [
      {"schedule": "A", "delay": 3153599999}, {"advance": 3153599998}, {"advance": 3153599999} ]},
  "examples/12-hashed-rounds": {"name": "a hashed wheel of 8: rounds tell the turns apart",
    "wheel": {"kind": "hashed", "tick": 1, "slots": [8], "start": 0}, "drive": "tick",
    "steps": [
      {"advance": 2}, {"schedule": "a", "delay": 3}, {"schedule": "r0", "delay": 4}, {"schedule": "r1", "delay": 12},
      {"schedule": "r2", "delay": 20}, {"advance": 22} ]},
  "examples/13-hashed-day": {"name": "2 days 10 h 20 min 30 s on a hashed wheel of one day",
    "wheel": {"kind": "hashed", "tick": 1, "slots": [86400], "start": 0}, "drive": "due",
    "steps": [
      {"schedule": "A", "delay": 210030}, {"advance": 210029}, {"advance": 210030} ]},
  "examples/14-cancel": {"name": "a cancelled timer never fires, and cancelling twice says no",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "due",
    "steps": [
      {"schedule": "t1", "delay": 10}, {"schedule": "t2", "delay": 1}, {"schedule": "t3", "delay": 3},
      {"cancel": "t1"}, {"cancel": "t1"}, {"advance": 20} ]},
  "examples/16-cancel-above": {"name": "cancelled while on an upper level: nothing left to hand down",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [60, 60, 24], "start": 0}, "drive": "due",
    "steps": [
      {"schedule": "A", "delay": 5420}, {"schedule": "B", "delay": 5421}, {"cancel": "A"}, {"advance": 6000} ]},
  "examples/15-backoff": {"name": "a retry that backs off 2, 4, 8, 16",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "due",
    "steps": [
      {"schedule": "try1", "delay": 2, "then": [{"schedule": "try2", "delay": 4,
        "then": [{"schedule": "try3", "delay": 8, "then": [{"schedule": "try4", "delay": 16}]}]}]},
      {"advance": 100} ]},
  "examples/19-every": {"name": "a fixed rate keeps its phase",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "due",
    "steps": [
      {"schedule": "p", "delay": 5, "every": 7}, {"advance": 26}, {"cancel": "p"}, {"advance": 100} ]},
  "examples/18-tick-rounds-up": {"name": "with a tick of 10, a timer never fires early",
    "wheel": {"kind": "hierarchical", "tick": 10, "slots": [5], "start": 1000}, "drive": "due",
    "steps": [
      {"schedule": "a", "delay": 0}, {"schedule": "b", "delay": 5}, {"schedule": "c", "delay": 10},
      {"schedule": "d", "delay": 11}, {"schedule": "e", "delay": 249}, {"advance": 1000}, {"advance": 1009},
      {"advance": 1300} ]},
  "examples/20-stop": {"name": "stop hands back what did not fire",
    "wheel": {"kind": "hierarchical", "tick": 1, "slots": [20], "start": 0}, "drive": "due", "limit": 3,
    "steps": [
      {"schedule": "a", "delay": 1}, {"schedule": "b", "delay": 5}, {"schedule": "c", "delay": 50},
      {"schedule": "d", "delay": 2}, {"advance": 1}, {"schedule": "e", "delay": 4}, {"cancel": "b"}, {"stop": true},
      {"schedule": "f", "delay": 1}, {"advance": 100} ]},
  "differs/due-401-at-clock-2": {"name": "due 401 at clock 2 on wheels of 20 goes to L2[0]",
    "wheel": {"kind": "hierarchical", "slots": [20]}, "drive": "bucket",
    "steps": [
      {"advance": 2}, {"schedule": "A", "at": 401}, {"advance": 400}, {"advance": 401} ]},
  "differs/delay-21-at-clock-1": {"name":
    "a delay of 21 at clock 1 on wheels of 20 goes to L2[1], not to the first wheel",
    "wheel": {"kind": "hierarchical", "slots": [20]}, "drive": "bucket",
    "steps": [
      {"advance": 1}, {"schedule": "A", "delay": 21}, {"advance": 20}, {"advance": 21}, {"advance": 22} ]},
  "differs/exactly-one-turn": {"name": "a delay of exactly one turn does not fit the first wheel",
    "wheel": {"kind": "hierarchical", "slots": [20]}, "drive": "bucket",
    "steps": [
      {"advance": 3}, {"schedule": "turn", "delay": 20}, {"schedule": "less", "delay": 19}, {"advance": 3},
      {"advance": 22}, {"advance": 23} ]},
  "differs/exactly-one-turn-hashed": {"name":
    "a delay of exactly one turn of a hashed wheel: the slot under the hand, one round",
    "wheel": {"kind": "hashed", "slots": [20]}, "drive": "bucket",
    "steps": [
      {"advance": 3}, {"schedule": "turn", "delay": 20}, {"advance": 3}, {"advance": 23} ]},
  "differs/rounding-up": {"name": "a deadline between two ticks waits for the later one",
    "wheel": {"kind": "hierarchical", "tick": 10, "slots": [5]}, "drive": "due",
    "steps": [
      {"advance": 7}, {"schedule": "A", "delay": 5}, {"schedule": "B", "delay": 3}, {"advance": 19}, {"advance": 20} ]
        }
};
