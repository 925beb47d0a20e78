/*
 * The algorithm of src/threads/dispatcher.ts, for SPIN: one slot, N threads that each want it once.
 * Thread 0 may die before any of its steps (DEATH); then the environment reaps it. Thread 1 may give up (CANCEL).
 * Each atomic access to shared memory is one step, except words that only the owner of the desk touches, which are
 * part of the step they follow.
 *
 * Checked: DISPATCH1 (assertion: one inside), DISPATCH3 (assertion in grant: nobody who arrived earlier is pending), DISPATCH5 and DISPATCH7 (no
 * invalid end state: nobody sleeps for ever; the slot is free at the end).
 *
 * Run: npm run model  (needs spin and a C compiler; CI does not: dispatcher.sim.test.ts explores the real code there)
 */
#ifndef N
#define N 3
#endif
#define NONE 255
#define SHUT 254
#define FREE 255

mtype = { UNUSED, WAITING, ASLEEP, GRANTED, CANCELLED };

byte holder = FREE;          /* a tag is the thread's number: one acquisition each */
byte gate = NONE;            /* NONE is open; SHUT; else the newest arrival */
byte desk = NONE;
bool bell = false;
bool dead[N];                /* what is so */
bool reported[N + 1];        /* what reap has said */
bool deaths = false;
mtype state[N];              /* one wait cell per thread */
byte below[N];
bool ticketed[N];
byte queue[N];               /* the list: only the owner of the desk */
byte length = 0;
byte arrived[N];             /* ghost: order of pushes */
byte arrivals = 0;
bool asleep[N];              /* in the futex */
byte inside = 0;             /* ghost */
byte finished = 0;
bool reaped = false;

/* Thread 0 may stop for ever here. */
#ifdef DEATH
#define MAY_DIE if :: (me == 0 && !dead[0]) -> goto die :: true fi
#else
#define MAY_DIE skip
#endif

inline wake(c) { asleep[c] = false }

inline remove_first() {
  d_step {
    i = 1;
    do :: i < length -> queue[i - 1] = queue[i]; i++ :: else -> break od;
    length--; queue[length] = NONE; i = 0
  }
}

inline check_order(c) {
  d_step {
    i = 0;
    do
    :: i < arrivals && arrived[i] != c ->
       assert(!(state[arrived[i]] == WAITING || state[arrived[i]] == ASLEEP) || dead[arrived[i]]);
       i++
    :: else -> break
    od;
    i = 0
  }
}

/* admit: link the stack's new part, oldest first, then cut it. */
inline admit() {
  do
  :: (gate == NONE || gate == SHUT) -> break
  :: atomic { (gate != NONE && gate != SHUT) -> top = gate };
     do
     :: d_step {
          /* the oldest one without a ticket */
          c = top; last = NONE;
          do :: (c != NONE && c != SHUT && !ticketed[c]) -> last = c; c = below[c] :: else -> break od
        };
        if
        :: last == NONE -> break
        :: else -> MAY_DIE; d_step { ticketed[last] = true; queue[length] = last; length++ }
        fi
     od;
     MAY_DIE;
     atomic { if :: gate == top -> gate = SHUT; break :: else -> skip fi }
  od
}

inline settle(c) {
  /* the holder word has c's tag */
  MAY_DIE;
  atomic {
    if
    :: state[c] == WAITING -> check_order(c); state[c] = GRANTED; was_asleep = false
    :: state[c] == ASLEEP -> check_order(c); state[c] = GRANTED; was_asleep = true
    :: state[c] == CANCELLED -> holder = FREE; state[c] = UNUSED; was_asleep = false
    :: else -> was_asleep = false
    fi
  };
  if :: was_asleep -> MAY_DIE; atomic { wake(c) } :: else -> skip fi
}

inline match() {
  do
  :: length == 0 -> break
  :: else ->
     c = queue[0];
     if
     :: atomic { state[c] == CANCELLED -> state[c] = UNUSED }; MAY_DIE; remove_first()
     :: state[c] != CANCELLED ->
        MAY_DIE;
        atomic { if :: holder == FREE -> holder = c; ok = true :: else -> ok = false fi };
        if
        :: ok -> settle(c); MAY_DIE; remove_first()
        :: else -> break
        fi
     fi
  od
}

inline bury() {
  /* found dead before admit */
  atomic { if :: holder != FREE && reported[holder] -> holder = FREE :: else -> skip fi };
  MAY_DIE;
  d_step {
    i = 0; last = 0;
    do
    :: i < length -> if :: reported[queue[i]] -> state[queue[i]] = UNUSED :: else -> queue[last] = queue[i]; last++ fi; i++
    :: else -> break
    od;
    length = last; i = 0
  };
  atomic {
    i = 0;
    do
    :: i < N -> if :: reported[i] -> state[i] = UNUSED :: else -> if :: state[i] == GRANTED -> wake(i) :: else -> skip fi fi; i++
    :: else -> break
    od;
    i = 0
  }
}

inline round() {
  atomic { seen_dead = deaths; deaths = false };
  admit();
  if :: seen_dead -> bury() :: else -> skip fi;
  match();
  MAY_DIE;
  atomic { if :: length == 0 && gate == SHUT -> gate = NONE :: else -> skip fi }
}

inline repair() {
  /* finish grants that stopped half way, then rebuild the list by ticket (arrival order) */
  atomic {
    if
    :: holder != FREE && (state[holder] == WAITING || state[holder] == ASLEEP) ->
       if :: state[holder] == ASLEEP -> wake(holder) :: else -> skip fi;
       state[holder] = GRANTED
    :: holder != FREE && state[holder] == CANCELLED -> state[holder] = UNUSED; holder = FREE
    :: else -> skip
    fi;
    length = 0; i = 0;
    do
    :: i < arrivals ->
       if
       :: ticketed[arrived[i]] && (state[arrived[i]] == WAITING || state[arrived[i]] == ASLEEP || state[arrived[i]] == CANCELLED) ->
          queue[length] = arrived[i]; length++
       :: else -> skip
       fi; i++
    :: else -> break
    od;
    i = 0
  }
}

inline call() {
  do
  :: atomic { desk == NONE -> desk = me }; serving = true; break
  :: atomic { (desk != NONE && reported[desk]) -> desk = me; bell = false }; repair(); serving = true; break
  :: atomic { (desk != NONE && !reported[desk]) -> bell = true }; serving = false; break
  od;
  do
  :: !serving -> break
  :: else ->
     MAY_DIE;
     round();
     MAY_DIE;
     atomic { if :: !bell -> desk = NONE; serving = false :: else -> bell = false fi }
  od
}

proctype Thread(byte me) {
  byte top, c, last, i = 0;
  bool ok, was_asleep, serving, seen_dead, has = false, counted = false;

  /* the fast path: a look at the gate, then a swap of the holder word */
  if :: atomic { gate == NONE -> ok = true } :: atomic { gate != NONE -> ok = false } fi;
  MAY_DIE;
  if
  :: ok -> atomic { if :: holder == FREE -> holder = me; has = true :: else -> skip fi }
  :: else -> skip
  fi;
  if
  :: has -> skip
  :: else ->
     MAY_DIE;
     state[me] = WAITING;
     do
     :: MAY_DIE;
        atomic { top = gate; below[me] = top };
        MAY_DIE;
        atomic {
          if :: gate == top -> gate = me; arrived[arrivals] = me; arrivals++; break :: else -> skip fi
        }
     od;
     MAY_DIE;
     call();
     /* sleep until granted, or give up */
     do
     :: MAY_DIE;
        atomic { if :: state[me] == WAITING -> state[me] = ASLEEP :: else -> skip fi };
        MAY_DIE;
        if
        :: atomic { state[me] == GRANTED -> state[me] = UNUSED }; has = true; break
        :: atomic { state[me] == ASLEEP -> asleep[me] = true };
           if
           :: !asleep[me] -> skip
#ifdef CANCEL
           :: me == 1 ->
              atomic {
                asleep[me] = false;
                if :: state[me] == ASLEEP -> state[me] = CANCELLED; ok = true :: else -> ok = false fi
              };
              if :: ok -> break :: else -> skip fi
#endif
#ifdef DEATH
           :: (me == 0) -> goto die
#endif
           fi
        fi
     od
  fi;
  if
  :: has ->
     atomic { inside++; counted = true; assert(inside == 1) };
     MAY_DIE;
     atomic { inside--; counted = false };
     MAY_DIE;
     atomic { assert(holder == me); holder = FREE };
     MAY_DIE;
     if :: gate == NONE -> skip :: gate != NONE -> call() fi
  :: else -> skip
  fi;
  finished++;
  goto over;
die:
  atomic { asleep[me] = false; if :: counted -> inside-- :: else -> skip fi; dead[me] = true; finished++ };
over:
  skip
}

/* Reaps thread 0 when it is dead. Another attachment: it takes the desk as any thread. */
proctype Reaper(byte me) {
  byte top, c, last, i = 0;
  bool ok, was_asleep, serving, seen_dead;
end:
  dead[0] -> reported[0] = true;
  deaths = true;
  call();
die:
  reaped = true
}

init {
  byte n = 0;
  atomic {
    do :: n < N -> state[n] = UNUSED; queue[n] = NONE; arrived[n] = NONE; below[n] = NONE; n++ :: else -> break od;
    n = 0;
    do :: n < N -> run Thread(n); n++ :: else -> break od;
#ifdef DEATH
    run Reaper(N)
#endif
  };
  /* all threads end, whatever happens, and what is left is whole */
  finished == N;
  (!dead[0] || reaped);
  assert(holder == FREE && desk == NONE && gate != N)
}
