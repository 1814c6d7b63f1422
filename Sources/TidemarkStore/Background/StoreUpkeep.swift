internal import TidemarkEngine

/// The thread that does what nobody waits for: background syncs, index images.
///
/// A store has one of its own unless its configuration gives one; a program with hundreds of stores
/// gives all of them the same:
///
/// ```swift
/// let upkeep = StoreUpkeep()
/// var configuration = Store.Configuration()
/// configuration.upkeep = upkeep
/// ```
/// It starts with the first commit, looks about every 50 ms at the stores that were written to
/// until all is settled, and sleeps until a commit wakes it. It ends when the last store has been
/// closed.
public final class StoreUpkeep: Sendable {
  private static let pauseNanoseconds: UInt64 = 50_000_000
  /// After failures a store is looked at less and less often: this many looks are left out at most.
  private static let mostLooksLeftOut = 200
  /// Looks without anything to sync before a store is left alone: a little more than the second
  /// after which the log itself is told how far it is synced.
  private static let looksBeforeSleep = 24

  /// One store as the thread sees it.
  fileprivate struct Row {
    let engine: Engine
    let compactor: CompactionThread?
    /// Raised by the first commit since the last look, which alone takes the lock.
    let news: AtomicSignal
    /// Whether it is looked at.
    var isActive = false
    var quietLooks = 0
    var looksToLeaveOut = 0
    /// How many after the next failure.
    var pause = 1
    var failure: TidemarkError?

    mutating func note(_ error: TidemarkError?, isSettled: Bool, hadNews: Bool) {
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
      if quietLooks >= StoreUpkeep.looksBeforeSleep, !news.isRaised {
        isActive = false
        quietLooks = 0
      }
    }
  }

  fileprivate struct State {
    var rows: [Int: Row] = [:]
    var next = 0
    /// The store that the thread is at.
    var working: Int?
    var thread: WorkerThread?
    var isAwake = false
  }

  fileprivate let state = Monitor(State())

  /// A thread for stores; it starts when one of them is written to.
  public init() {}

  /// A store was written to, and its news were just raised.
  fileprivate func wake(_ member: Int) {
    let sleeps = state.withLock { state in
      guard state.rows[member] != nil else { return false }
      state.rows[member]?.isActive = true
      if state.thread == nil { startThread(&state, member) }
      return !state.isAwake
    }
    if sleeps { state.broadcast() }
  }

  /// Starts the thread; where the system gives none, the next commit tries again.
  private func startThread(_ state: inout State, _ member: Int) {
    do throws(TidemarkError) {
      state.thread = try WorkerThread(name: "tidemark-work") { [self] in run() }
    } catch {
      state.rows[member]?.failure = error
      state.rows[member]?.news.take()
    }
  }

  private func run() {
    while true {
      let goesOn = state.wait { state -> Bool? in
        state.isAwake = false
        if state.rows.isEmpty {
          // The next store that comes starts another one.
          state.thread = nil
          return false
        }
        guard state.rows.values.contains(where: \.isActive) else { return nil }
        state.isAwake = true
        return true
      }
      guard goesOn else { return }
      if state.wait(timeoutNanoseconds: Self.pauseNanoseconds, until: { $0.rows.isEmpty }) {
        continue
      }
      for member in state.withLock({ $0.rows.filter(\.value.isActive).keys.sorted() }) {
        look(at: member)
      }
    }
  }

  private func look(at member: Int) {
    let row = state.withLock { state -> Row? in
      guard let row = state.rows[member] else { return nil }
      guard row.looksToLeaveOut == 0 else {
        state.rows[member]?.looksToLeaveOut -= 1
        return nil
      }
      state.working = member
      return row
    }
    guard let row else { return }
    let hadNews = row.news.take()
    var failure: TidemarkError?
    var isSettled = false
    do throws(TidemarkError) {
      try row.engine.doBackgroundWork()
      try row.compactor?.compactIfDue()
      isSettled =
        row.engine.reader.isSuspended
        || row.engine.reader.lastSequence == row.engine.reader.durableSequence
    } catch { failure = error }
    state.withLock { state in
      state.working = nil
      state.rows[member]?.note(failure, isSettled: isSettled, hadNews: hadNews)
    }
    state.broadcast()
  }
}

/// A store's part in a ``StoreUpkeep``.
struct UpkeepMember: Sendable {
  private let upkeep: StoreUpkeep
  private let engine: Engine
  private let member: Int
  private let observation: Int

  init(_ upkeep: StoreUpkeep, _ engine: Engine, _ compactor: CompactionThread?) {
    let news = AtomicSignal()
    let member = upkeep.state.withLock { state in
      state.next += 1
      state.rows[state.next] = StoreUpkeep.Row(engine: engine, compactor: compactor, news: news)
      return state.next
    }
    self.upkeep = upkeep
    self.engine = engine
    self.member = member
    observation = engine.observe { if news.raise() { upkeep.wake(member) } }
  }

  var isStarted: Bool { upkeep.state.withLock { $0.thread != nil } }

  /// The error that the last work for the store ended with.
  var lastError: TidemarkError? { upkeep.state.withLock { $0.rows[member]?.failure } }

  /// Lets the store go again, after the work on it that may be under way.
  func stop() {
    engine.stopObserving(observation)
    upkeep.state.withLock { $0.rows[member] = nil }
    upkeep.state.broadcast()
  }

  /// Waits until nothing is done for the store any more; after ``stop()`` only.
  func join() { upkeep.state.wait { $0.working != member } }
}
