internal import TidemarkEngine

/// A background thread that several stores can share, for background syncs and index checkpoints.
///
/// A store has one of its own unless its configuration gives one; a program with hundreds of stores
/// gives all of them the same:
///
/// ```swift
/// let upkeep = StoreUpkeep()
/// var configuration = Store.Configuration()
/// configuration.upkeep = upkeep
/// ```
/// The thread starts with the first commit. It looks about every 50 ms at the stores that were
/// written to, until all of their entries are durable, and sleeps until a commit wakes it. It ends
/// when the last store has been closed.
public final class StoreUpkeep: Sendable {
  private static let pauseNanoseconds: UInt64 = 50_000_000
  /// After each failure of a store twice as many looks at it are left out; this many at most.
  private static let mostLooksLeftOut = 200
  /// A store becomes inactive after so many looks with nothing to sync. That is a little more than
  /// the second after which the engine notes in the log itself how far the log is synced.
  private static let looksBeforeSleep = 24

  /// One store as the thread sees it. Its variables are read and changed under the lock.
  fileprivate struct StoreState {
    let engine: Engine
    let compactor: CompactionThread?
    /// Raised by commits. Only the first one since the last look raises it and takes the lock.
    let news: AtomicSignal
    /// Whether the thread looks at the store.
    var isActive = false
    var quietLooks = 0
    var looksToLeaveOut = 0
    /// How many looks are left out after the next failure.
    var pause = 1
    var failure: TidemarkError?

    /// Books the outcome of a look.
    /// - Parameter isSettled: whether there is nothing left to sync.
    mutating func didLook(_ error: TidemarkError?, isSettled: Bool, hadNews: Bool) {
      if let error {
        failure = error
        quietLooks = 0
        looksToLeaveOut = pause
        pause = min(2 * pause, StoreUpkeep.mostLooksLeftOut)
        return
      }
      quietLooks = isSettled && !hadNews ? quietLooks + 1 : 0
      if isSettled { failure = nil }
      pause = 1
      // While the signal is raised no further commit calls `wake`, so the store must stay active.
      if quietLooks >= StoreUpkeep.looksBeforeSleep, !news.isRaised {
        isActive = false
        quietLooks = 0
      }
    }
  }

  fileprivate struct State {
    /// The stores by the number of their ``UpkeepMember``.
    var stores: [Int: StoreState] = [:]
    var lastMember = 0
    /// The store that the thread works on without the lock.
    var working: Int?
    var thread: WorkerThread?
    /// Whether the thread will look at all active stores before it sleeps, so need not be woken.
    var isAwake = false
  }

  fileprivate let state = Monitor(State())

  /// Creates a thread to share between stores. It starts with the first commit of one of them.
  public init() {}

  /// A commit of a store has just raised the store's signal.
  fileprivate func wake(_ member: Int) {
    let sleeps = state.withLock { state in
      guard state.stores[member] != nil else { return false }
      state.stores[member]?.isActive = true
      guard state.thread == nil else { return !state.isAwake }
      do throws(TidemarkError) {
        state.thread = try WorkerThread(name: "tidemark-work") { [self] in run() }
      } catch {
        state.stores[member]?.failure = error
        // The next commit raises the signal again, calls this and tries again.
        state.stores[member]?.news.take()
      }
      return !state.isAwake
    }
    if sleeps { state.broadcast() }
  }

  private func run() {
    while true {
      let goesOn = state.wait { state -> Bool? in
        state.isAwake = false
        if state.stores.isEmpty {
          // The next store that is written to starts another thread.
          state.thread = nil
          return false
        }
        guard state.stores.values.contains(where: \.isActive) else { return nil }
        state.isAwake = true
        return true
      }
      guard goesOn else { return }
      // The pause between looks, cut short when the last store is closed.
      if state.wait(timeoutNanoseconds: Self.pauseNanoseconds, until: { $0.stores.isEmpty }) {
        continue
      }
      for member in state.withLock({ $0.stores.filter(\.value.isActive).keys.sorted() }) {
        look(at: member)
      }
    }
  }

  private func look(at member: Int) {
    let found = state.withLock { state -> StoreState? in
      guard let store = state.stores[member] else { return nil }
      guard store.looksToLeaveOut == 0 else {
        state.stores[member]?.looksToLeaveOut -= 1
        return nil
      }
      state.working = member
      return store
    }
    guard let store = found else { return }
    // Before the work: a commit during the work raises the signal again and gets another look.
    let hadNews = store.news.take()
    var failure: TidemarkError?
    var isSettled = false
    do throws(TidemarkError) {
      try store.engine.doBackgroundWork()
      try store.compactor?.compactIfDue()
      let reader = store.engine.reader
      isSettled = reader.isSuspended || reader.lastSequence == reader.durableSequence
    } catch {
      failure = error
      store.engine.store.tell(.failed, subject: "upkeep", error: error)
    }
    state.withLock { state in
      state.working = nil
      state.stores[member]?.didLook(failure, isSettled: isSettled, hadNews: hadNews)
    }
    state.broadcast()  // `UpkeepMember.join` waits for `working`
  }
}

/// A store's membership in a ``StoreUpkeep``, from `init` to ``stop()``; the store owns it.
struct UpkeepMember: Sendable {
  private let upkeep: StoreUpkeep
  private let engine: Engine
  private let member: Int
  private let observation: Int

  init(_ upkeep: StoreUpkeep, _ engine: Engine, _ compactor: CompactionThread?) {
    let news = AtomicSignal()
    let member = upkeep.state.withLock { state in
      state.lastMember += 1
      state.stores[state.lastMember] = StoreUpkeep.StoreState(
        engine: engine, compactor: compactor, news: news)
      return state.lastMember
    }
    self.upkeep = upkeep
    self.engine = engine
    self.member = member
    observation = engine.observe { if news.raise() { upkeep.wake(member) } }
  }

  var isStarted: Bool { upkeep.state.withLock { $0.thread != nil } }

  /// The error that the last work for the store ended with.
  var lastError: TidemarkError? { upkeep.state.withLock { $0.stores[member]?.failure } }

  /// Ends the membership. Work on the store may still be under way: ``join()`` waits for its end.
  func stop() {
    engine.stopObserving(observation)
    upkeep.state.withLock { $0.stores[member] = nil }
    upkeep.state.broadcast()
  }

  /// Waits until the thread does not work on the store any more; after ``stop()`` only.
  func join() { upkeep.state.wait { $0.working != member } }
}
