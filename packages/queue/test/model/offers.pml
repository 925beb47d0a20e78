/*
 * Offers and commits of one host, for SPIN: two instances, one store, three sessions that each want a slot once.
 * The decision follows src/decide, the cycle and the cached book src/engine/{cycle,host-cache,store-wait}.ts.
 *
 * A book is the standing of each session. The store has one, and each instance has a cached copy. A decision changes
 * the copy, and the commit replaces the store's book if the copy was current. Tags are not counted: `current[i]` says
 * that the tag of instance i is the store's.
 *
 * Time is left out: whatever ends by time (an offer, the patience for an absent client) may end at any moment.
 * So the properties hold for every length of these times. At most FAULTS of these faults happen, in any combination:
 * an instance crashes, a commit or its answer is lost, a notice is lost, a client loses its connection or an answer or
 * vanishes, and a living instance counts as dead. A commit of a crashed instance may still reach the store later.
 *
 * Checked in every state (-DLIMIT -DOWNER):
 *   LIMIT   the store never has more leases and offers than SLOTS, and never more than SLOTS clients use one.
 *   OWNER   a client that uses a slot has its lease in the store, and a session that had its slot never gets another.
 * Checked in every run, under weak fairness (-DSERVED):
 *   SERVED  each session whose client stays gets its slot. A waiter that stays beside a free slot would break this.
 *
 * Left out: renewals, deadlines, cancellations, the breaker, buckets and their order (sessions are served by number).
 *
 * Run: npm run model (needs spin and gcc). BREAK_… are the planted bugs; each must be found.
 */
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef SESSIONS
#define SESSIONS 3
#endif
#define INSTANCES 2
#define NONE 255
/* Refused commits in a row before the store reserves the next commit; three in the engine. */
#define RESERVES_AFTER 2

mtype = { UNKNOWN, WAITING, OFFERED, HELD, ENDED, /* answers of the store: */ LOST, OK, REFUSED };

typedef Book {
  mtype standing[SESSIONS];
  bit at[SESSIONS];            /* the instance of the waiter, or the owner of the lease */
  bit isAway[SESSIONS];        /* the client of the waiter is away */
  bit isAbsent[INSTANCES]      /* the instance let an offer lapse, and gave no sign of life since */
};

Book store;
Book cache[INSTANCES];         /* with the changes of a decision in progress */
byte reservedBy = NONE;
byte faults = FAULTS;

typedef Host {                 /* what an instance has besides the book */
  bit isCrashed;
  bit isCurrent;
  bit isWoken;
  bit isStale;                 /* read the store before the next decision */
  bit isDue;                   /* a time has come: offers lapse, leases of clients that left end */
  bit isOtherDead;             /* the other instance counts as dead */
  bit isRunning;               /* a turn is in progress */
  bit arrivals[SESSIONS];      /* inputs that are queued */
  bit releases[SESSIONS];
  bit returns[SESSIONS];
  bit isArriving[SESSIONS];    /* inputs of the turn */
  bit isReleasing[SESSIONS];
  bit isReturning[SESSIONS];
  bit isMade[SESSIONS];        /* the commit in progress makes this lease */
  bit isPending[SESSIONS];     /* the session waits here */
  bit isUndelivered[SESSIONS]  /* made here, and no call took it */
};
Host host[INSTANCES];

byte poll[SESSIONS];           /* the instance that holds a call of the client */
bit isAnswered[SESSIONS];      /* the answer `granted` is on its way to the client */
bit hasCalled[SESSIONS];       /* sessions begin in order, the first one at instance 0: the others are the same cases */
bit isUsing[SESSIONS];
bit isDone[SESSIONS];          /* used and released */
bit isGone[SESSIONS];          /* never comes back */

#define book cache[me]
#define mine host[me]
#define isAlive (!mine.isCrashed)
#define waitsAt(b, s, i) (b.at[s] == i && (b.standing[s] == WAITING || b.standing[s] == OFFERED))
#define hasStanding(x) (book.standing[0] == x || book.standing[1] == x || book.standing[SESSIONS - 1] == x)
#define hasWaiters(b, i) (waitsAt(b, 0, i) || waitsAt(b, 1, i) || waitsAt(b, SESSIONS - 1, i))
#define hasPending (mine.isPending[0] || mine.isPending[1] || mine.isPending[SESSIONS - 1])
#define hasUndelivered (mine.isUndelivered[0] || mine.isUndelivered[1] || mine.isUndelivered[SESSIONS - 1])
#define isLost(s) (book.standing[s] == HELD && (isDone[s] || isGone[s]))
#define hasLeft (isLost(0) || isLost(1) || isLost(SESSIONS - 1))

inline copy(to, from) {
  k = 0;
  do
  :: k < SESSIONS ->
     to.standing[k] = from.standing[k]; to.at[k] = from.at[k]; to.isAway[k] = from.isAway[k]; k++
  :: else -> break
  od;
  to.isAbsent[0] = from.isAbsent[0]; to.isAbsent[1] = from.isAbsent[1];
  k = 0
}

/* The promises about the store, when instance `me` commits. */
inline check() {
  k = 0; n = 0; m = 0;
  do
  :: k < SESSIONS ->
     if :: book.standing[k] == HELD || book.standing[k] == OFFERED -> n++ :: else fi;
     if :: isUsing[k] -> m++ :: else fi;
#ifdef OWNER
     assert(!isUsing[k] || book.standing[k] == HELD);
     assert(!isDone[k] || store.standing[k] == HELD || (book.standing[k] != HELD && book.standing[k] != OFFERED));
#endif
     k++
  :: else -> break
  od;
#ifdef LIMIT
  assert(n <= SLOTS && m <= SLOTS);
#endif
  k = 0; n = 0; m = 0
}

inline wake(i) { host[i].isWoken = 1 }

/* An answered poll. Its client may lose the answer. */
inline answer(s) { poll[s] = NONE; isAnswered[s] = 1 }

/* ---- The decision (src/decide) ---- */

inline lapse(s) {
  book.standing[s] = WAITING; isChanged = 1;
  if
  :: poll[s] == me -> skip
  :: else ->
     if
     :: book.at[s] == me || isSeen -> book.isAway[s] = 1
     :: else -> book.isAbsent[other] = 1
     fi
  fi
}

inline end_lease(s) {
#ifdef BREAK_ENDS_FORGOTTEN
  book.standing[s] = UNKNOWN;
#else
  book.standing[s] = ENDED;
#endif
  book.at[s] = 0; isChanged = 1
}

/* What ended by time, and signs of life. */
inline catch_up() {
  if :: book.isAbsent[me] -> book.isAbsent[me] = 0; isChanged = 1 :: else fi;
  if :: book.isAbsent[other] && isSeen -> book.isAbsent[other] = 0; isChanged = 1 :: else fi;
  k = 0;
  do
  :: k < SESSIONS ->
     if
     :: mine.isDue && book.standing[k] == OFFERED -> lapse(k)
#ifndef BREAK_NO_EXPIRY
     :: mine.isDue && isLost(k) -> end_lease(k)
#endif
     :: else
     fi; k++
  :: else -> break
  od
}

inline arrive(s) {
  if
  :: book.standing[s] == UNKNOWN -> book.standing[s] = WAITING; book.at[s] = me; isChanged = 1
  :: book.standing[s] == WAITING || book.standing[s] == OFFERED ->
     if :: book.at[s] != me || book.isAway[s] -> isChanged = 1 :: else fi;
     book.at[s] = me;
#ifndef BREAK_AWAY_STAYS
     book.isAway[s] = 0
#endif
  :: book.standing[s] == HELD && book.at[s] != me -> book.at[s] = me; isChanged = 1
  :: else
  fi
}

/* Only the owner takes a lease back. */
inline take_back(s) {
  if
#ifdef BREAK_RETURN_BY_ANY
  :: book.standing[s] == HELD ->
#else
  :: book.standing[s] == HELD && book.at[s] == me ->
#endif
     book.standing[s] = WAITING; book.at[s] = me; book.isAway[s] = 1; isChanged = 1
  :: else
  fi
}

inline take_inputs() {
  k = 0;
  do
  :: k < SESSIONS ->
     if
     :: mine.isOtherDead && book.at[k] == other && (book.standing[k] == WAITING || book.standing[k] == OFFERED) ->
        book.standing[k] = UNKNOWN; book.at[k] = 0; book.isAway[k] = 0; isChanged = 1
     :: else
     fi;
     if :: mine.isReturning[k] -> take_back(k) :: else fi;
     if :: mine.isReleasing[k] && book.standing[k] == HELD -> end_lease(k) :: else fi;
     if :: mine.isArriving[k] -> arrive(k) :: else fi;
     k++
  :: else -> break
  od
}

/* A lease for an open poll, otherwise an offer; nothing if this instance knows that the client is away. */
inline hand(s) {
  if
  :: poll[s] == me -> book.standing[s] = HELD; book.at[s] = me; book.isAway[s] = 0; mine.isMade[s] = 1
  :: poll[s] != me && book.at[s] == me && (isLeft || isGone[s]) -> book.standing[s] = WAITING; book.isAway[s] = 1
  :: else -> book.standing[s] = OFFERED
  fi
}

inline hand_out() {
  k = 0; n = 0;
  do
  :: k < SESSIONS ->
     if
     :: book.standing[k] == OFFERED ->
        hand(k);
        if :: book.standing[k] != OFFERED -> isChanged = 1 :: else fi
     :: else
     fi;
     if :: book.standing[k] == HELD || book.standing[k] == OFFERED -> n++ :: else fi;
     k++
  :: else -> break
  od;
  k = 0;
  do
  :: k < SESSIONS ->
     if
     :: n < SLOTS && book.standing[k] == WAITING && !book.isAway[k] && !book.isAbsent[book.at[k]] ->
        hand(k); isChanged = 1;
        if :: book.standing[k] != WAITING -> n++ :: else fi
     :: else
     fi; k++
  :: else -> break
  od;
  k = 0; n = 0
}

/*
 * Decides until there is something to commit or to answer. CYCLE5: if an input changes nothing, the book must be
 * current. This is one job of the process, so nothing happens in between.
 */
inline decide() {
  atomic {
    /* A beat of the other instance was seen since; the client has been away for long. */
    if :: true :: !host[other].isCrashed -> isSeen = 1 fi;
    if :: true :: isLeft = 1 fi;
    d_step {
      do
      :: if :: mine.isStale -> read() :: else fi;
         isChanged = 0;
         catch_up(); take_inputs(); hand_out();
         if :: !isChanged && hasInputs && !isCompared -> mine.isStale = 1 :: else -> break fi
      od;
      if :: !isChanged -> end_turn() :: else fi;
      mine.isDue = 0; mine.isOtherDead = 0; isSeen = 0; isLeft = 0; hasInputs = 0; isCompared = 0
    }
  }
}

/* ---- What an instance does with a book (src/engine/sessions.ts) ---- */

inline join(s) { mine.arrivals[s] = 1; wake(me) }

#define isJoining(s) (mine.arrivals[s] || mine.isArriving[s] || mine.returns[s] || mine.isReturning[s])

inline settle_one(s) {
  if
  :: !mine.isPending[s] || isJoining(s) -> skip
  :: else ->
     if
     :: book.standing[s] == HELD && book.at[s] == me ->
        mine.isPending[s] = 0;
        if :: poll[s] == me -> answer(s) :: else -> mine.isUndelivered[s] = 1 fi
     :: book.standing[s] == HELD && book.at[s] != me && poll[s] == me -> join(s)
     :: book.standing[s] == UNKNOWN -> join(s)
     :: book.standing[s] == OFFERED && book.at[s] == me -> wake(me)
     :: (book.standing[s] == HELD || book.standing[s] == WAITING || book.standing[s] == OFFERED) && book.at[s] != me ->
        mine.isPending[s] = 0;
        if :: poll[s] == me -> poll[s] = NONE :: else fi
     :: book.standing[s] == ENDED -> mine.isPending[s] = 0
     :: else
     fi
  fi
}

inline settle() {
  n = 0;
  do :: n < SESSIONS -> settle_one(n); n++ :: else -> break od;
  n = 0
}

/* CYCLE2 is that no answer is given before its commit. */
inline answer_first() {
#ifdef BREAK_ANSWER_FIRST
  d_step {
    n = 0;
    do :: n < SESSIONS -> if :: mine.isMade[n] && poll[n] == me -> answer(n) :: else fi; n++ :: else -> break od;
    n = 0
  }
#else
  skip
#endif
}

/* A poll begins, or continues after its window. A slot that waits here for its client is the answer. */
#define isMarkedAway(s) (cache[poll[s]].standing[s] == WAITING && cache[poll[s]].at[s] == poll[s] && cache[poll[s]].isAway[s] \
  && !host[poll[s]].arrivals[s] && !host[poll[s]].isArriving[s])
inline call_instance(i, s) {
  poll[s] = i;
  if
  :: host[i].isUndelivered[s] -> host[i].isUndelivered[s] = 0; answer(s)
  :: else -> host[i].isPending[s] = 1; host[i].arrivals[s] = 1; wake(i)
  fi
}

/* No call took the slot for a while. */
inline give_back() {
  k = 0;
  do
  :: k < SESSIONS ->
     if :: mine.isUndelivered[k] -> mine.isUndelivered[k] = 0; mine.isPending[k] = 1; mine.returns[k] = 1; wake(me) :: else fi;
     k++
  :: else -> break
  od;
  k = 0
}

/* The turn is over: each input gets its outcome. A slot that an arrival finds is never taken back. */
inline answer_turn() {
  n = 0;
  do
  :: n < SESSIONS ->
     if
     :: mine.isArriving[n] && !mine.isMade[n] && book.standing[n] == HELD && book.at[n] == me ->
        mine.isPending[n] = 0;
        if :: poll[n] == me -> answer(n) :: else fi
     :: else
     fi;
     mine.isArriving[n] = 0; mine.isReleasing[n] = 0; mine.isReturning[n] = 0; mine.isMade[n] = 0;
     n++
  :: else -> break
  od;
  settle()
}

inline next_turn() {
  n = 0;
  do
  :: n < SESSIONS ->
     mine.isArriving[n] = mine.arrivals[n]; mine.isReleasing[n] = mine.releases[n]; mine.isReturning[n] = mine.returns[n];
     if :: mine.arrivals[n] || mine.releases[n] || mine.returns[n] -> hasInputs = 1 :: else fi;
     mine.arrivals[n] = 0; mine.releases[n] = 0; mine.returns[n] = 0;
     n++
  :: else -> break
  od;
  n = 0; mine.isWoken = 0; mine.isRunning = 1
}

inline end_turn() {
  answer_turn();
  conflicts = 0; reply = LOST; mine.isRunning = 0;
  if :: reservedBy == me -> reservedBy = NONE :: else fi
}

inline read() {
  copy(cache[me], store); mine.isCurrent = 1; mine.isStale = 0; isCompared = 1;
  settle()
}

/* ---- The store: compares and swaps ---- */

inline accept() {
  check();
  copy(store, cache[me]);
  mine.isCurrent = 1; host[other].isCurrent = 0; reservedBy = NONE;
  isLanded = 1; isAccepted = 1; reply = OK
}

inline refuse() {
  reply = REFUSED;
  if :: conflicts >= RESERVES_AFTER && reservedBy == NONE -> reservedBy = me :: else fi
}

#define isReserved (reservedBy == other && !host[other].isCrashed)

/* isForgotten: the store has had too many other commits to know that it has this one. */
inline reach_store() {
  if
  :: isLanded ->
#ifdef BREAK_RESENT_APPLIED
     accept()
#else
     if :: isForgotten && !mine.isCurrent -> refuse() :: else -> reply = OK fi
#endif
#ifdef BREAK_BLIND_STORE
  :: !isLanded -> accept()
#else
  :: !isLanded && mine.isCurrent && !isReserved -> accept()
  :: !isLanded && !(mine.isCurrent && !isReserved) -> refuse()
#endif
  fi
}

/* A refusal has the store's book. */
inline read_reply() {
  if
  :: reply == REFUSED ->
     copy(cache[me], store); mine.isCurrent = 1;
     if :: conflicts < RESERVES_AFTER -> conflicts++ :: else fi;
     n = 0;
     do :: n < SESSIONS -> mine.isMade[n] = 0; n++ :: else -> break od;
     n = 0
  :: else
  fi;
  isLanded = 0
}

/* Only an instance with waiters gets a notice. */
inline notify() {
  if
  :: isAccepted && hasWaiters(cache[me], other) -> host[other].isStale = 1; wake(other)
  :: isAccepted && hasWaiters(cache[me], other) && faults > 0 -> faults--     /* the notice is lost */
  :: !(isAccepted && hasWaiters(cache[me], other))
  fi;
  isAccepted = 0
}

/* One instance may crash. Its clients lose their connections. */
#define MAY_CRASH (faults > 0 && !host[other].isCrashed)
inline crash() { faults--; mine.isCrashed = 1; mine.isWoken = 0 }

/* CACHE2: the same commit until the store answers. */
inline commit() {
  do
  :: atomic { faults > 0 -> faults-- }                     /* the commit is lost */
  :: atomic {
       faults > 0 -> faults--;                             /* the answer is lost */
       d_step { reach_store(); reply = LOST };
       notify()
     }
  :: atomic { MAY_CRASH -> crash(); isSent = 1; goto gone }
  :: atomic {
       if :: true :: isLanded && !mine.isCurrent -> isForgotten = 1 fi;
       d_step { reach_store(); isForgotten = 0 };
       notify();
       d_step { read_reply() }
     };
     break
  od
}

proctype Instance(bit me) {
  byte k, n, m, conflicts;
  mtype reply = LOST;
  bit other = 1 - me;
  bit isChanged, isSeen, isLeft, hasInputs, isCompared, isLanded, isForgotten, isAccepted, isSent;

end_idle:
  atomic {
    if :: mine.isWoken :: MAY_CRASH -> crash(); goto gone fi;
next:
    skip;
    d_step { next_turn() };
again:
    skip;
    decide();
    if :: !isChanged -> goto end_idle :: else -> isChanged = 0; answer_first() fi
  };
  commit();
  atomic {
    if
    :: MAY_CRASH -> crash(); goto gone
    :: reply == REFUSED -> d_step { isCompared = 1; reply = LOST; settle() }; goto again
    :: reply == OK -> d_step { end_turn() }; if :: mine.isWoken -> goto next :: else -> goto end_idle fi
    fi
  };
gone:
  /* A commit that was sent may arrive later. */
  if
  :: isSent -> atomic { d_step { if :: !isLanded && mine.isCurrent && !isReserved -> accept() :: else fi }; notify() }
  :: true
  fi
}

/* What happens by time. */
proctype Timer(bit me) {
  bit other = 1 - me;
  byte k;
end:
  do
  :: atomic { isAlive && !mine.isCurrent && !mine.isStale && hasPending -> mine.isStale = 1; wake(me) }
  :: atomic { isAlive && !mine.isRunning && !mine.isDue && (hasStanding(OFFERED) || (hasPending && hasLeft)) -> mine.isDue = 1; wake(me) }
  :: atomic { isAlive && hasUndelivered -> d_step { give_back() } }
  :: atomic { isAlive && !mine.isRunning && !mine.isOtherDead && host[other].isCrashed && hasWaiters(cache[me], other) -> mine.isOtherDead = 1; wake(me) }
  :: atomic { isAlive && !mine.isRunning && !mine.isOtherDead && faults > 0 && hasWaiters(cache[me], other) -> faults--; mine.isOtherDead = 1; wake(me) }
  od
}

/* The client vanishes. What it waits for or holds ends by time. */
inline leave(s) { poll[s] = NONE; isAnswered[s] = 0; isUsing[s] = 0; hasCalled[s] = 1; isGone[s] = 1 }

inline use(s) {
#ifdef OWNER
  assert(store.standing[s] == HELD);
#endif
#ifdef LIMIT
  assert(isUsing[0] + isUsing[1] + (SESSIONS > 2 -> isUsing[SESSIONS - 1] : 0) <= SLOTS);
#endif
  skip
}

proctype Client(byte s) {
  bit i;
  do
  :: atomic {
       poll[s] == NONE && !isAnswered[s] && (s == 0 || hasCalled[s - 1]) ->
       if :: !host[0].isCrashed -> i = 0 :: !host[1].isCrashed && (hasCalled[0] || host[0].isCrashed) -> i = 1 fi;
       d_step { hasCalled[s] = 1; call_instance(i, s); i = 0 }
     }
  :: atomic { poll[s] != NONE && (host[poll[s]].isCrashed || faults > 0) ->
       if :: host[poll[s]].isCrashed :: else -> faults-- fi;    /* the connection is lost */
       poll[s] = NONE }
  :: atomic { poll[s] != NONE && !host[poll[s]].isCrashed && isMarkedAway(s) -> d_step { call_instance(poll[s], s) } }
  :: atomic { isAnswered[s] && faults > 0 -> faults--; isAnswered[s] = 0 }     /* the answer is lost */
  :: atomic { faults > 0 -> faults--; leave(s); goto over }
  :: atomic { isAnswered[s] -> isAnswered[s] = 0; isUsing[s] = 1; use(s); break }
  od;
  atomic {
    if :: !host[0].isCrashed -> i = 0 :: !host[1].isCrashed -> i = 1 :: faults > 0 -> faults--; leave(s); goto over fi;
    d_step { isUsing[s] = 0; isDone[s] = 1; host[i].releases[s] = 1; wake(i); i = 0 }
  };
over:
  skip
}

init {
  byte n;
  d_step {
    do
    :: n < SESSIONS ->
       store.standing[n] = UNKNOWN; cache[0].standing[n] = UNKNOWN; cache[1].standing[n] = UNKNOWN; poll[n] = NONE; n++
    :: else -> break
    od;
    n = 0; host[0].isCurrent = 1; host[1].isCurrent = 1
  };
  atomic {
    run Instance(0); run Instance(1); run Timer(0); run Timer(1);
    do :: n < SESSIONS -> run Client(n); n++ :: else -> break od;
    n = 0
  }
}

#ifdef SERVED
#define isOver(s) (isDone[s] || isGone[s])
ltl served { <> (isOver(0) && isOver(1) && isOver(SESSIONS - 1)) }
#endif
