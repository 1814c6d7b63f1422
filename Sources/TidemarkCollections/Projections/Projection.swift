internal import TidemarkEngine

/// A state that is computed from a store's changes, one after the other, and kept up to date.
///
/// ```swift
/// let totals = try store.projection(named: "totals", initial: Totals(), prefix: "payments/") {
///   totals, entry in
///   guard entry.kind == .put else { return }
///   totals.sum += Payment(entry.value).amount
/// }
/// print(totals.state.sum)
/// ```
/// The state is stored with how far it has come, in one commit, so that each change counts once,
/// whatever happens in between; the closure itself may see a change again after a crash, upon the
/// state before it. Compaction keeps what the projection has yet to read.
public final class Projection<State: Codable & Sendable>: Sendable {
  /// A closure that takes one change up into the state.
  public typealias Reducer = @Sendable (inout State, Entry) throws -> Void

  /// So many changes are taken before a checkpoint is written.
  static var changesPerCheckpoint: Int { 1_000 }
  /// After so many entries, also of what does not concern it, one is written as well.
  static var entriesPerCheckpoint: UInt64 { 10_000 }
  /// Changes that are few wait so long for it, in nanoseconds.
  static var nanosecondsPerCheckpoint: UInt64 { 1_000_000_000 }

  struct Progress: Sendable {
    var state: State
    /// The last change that is in the state.
    var position: EntryCursor
    var failure: (any Error)?
    var isStopped = false
    var sinceCheckpoint = 0
    var lastCheckpoint: UInt64 = 0
    /// The sequence of the last checkpoint.
    var checkpointed: UInt64 = 0
  }

  /// The projection's name; the store keeps its checkpoint under it.
  public let name: String
  /// The version of the closure and the state; with another version the projection starts anew.
  public let version: UInt32
  let store: Store
  let initial: State
  let prefix: Key
  let reduce: Reducer
  let progress: Lock<Progress>
  /// Wakes tasks that wait for progress.
  let advance = Signal()
  /// Held while changes are taken.
  let working = Lock<ChangeReader?>(nil)
  let key: [UInt8]
  /// Wakes the task that takes changes.
  let wakeup = Lock<Signal?>(nil)

  init(
    _ store: Store, _ name: String, _ version: UInt32, _ initial: State, _ prefix: Key,
    _ reduce: @escaping Reducer
  ) throws(TidemarkError) {
    let bytes = Array(name.utf8)
    guard (1...255).contains(bytes.count) else {
      throw TidemarkError(.invalidArgument, "a projection's name has 1 to 255 bytes")
    }
    self.store = store
    self.name = name
    self.version = version
    self.initial = initial
    self.prefix = prefix
    self.reduce = reduce
    key = ProjectionPin.keys + bytes
    let found = try Self.stored(store, ProjectionPin.keys + bytes, version)
    progress = Lock(
      Progress(state: found?.state ?? initial, position: found?.position ?? .beginning))
  }

  /// The present state, with every change that the projection has taken so far.
  public var state: State { progress.withLock { $0.state } }

  /// The cursor of the last change that is in ``state``.
  public var position: EntryCursor { progress.withLock { $0.position } }

  /// The error that has stopped the projection; nil while it goes on.
  public var failure: (any Error)? { progress.withLock { $0.failure } }

  /// Follows the state: delivers it at once, then each time it changes; see ``LiveValues``.
  /// - Parameter interval: the least time between two states.
  public func values(minimumInterval interval: Duration = .zero) -> LiveValues<State> {
    LiveValues(store: store, interval: interval) { [self] in ProjectionWatcher(self) }
  }

  /// Waits until everything is in the state that was committed before the call.
  /// - Throws: why the projection has stopped; `CancellationError`.
  @discardableResult
  public func caughtUp() async throws -> State {
    let goal = store.lastSequence
    try await advance.first {
      progress.withLock { progress -> Void? in
        let waits =
          progress.position.sequence < goal && progress.failure == nil && !progress.isStopped
        return waits ? nil : ()
      }
    }
    if let failure { throw failure }
    return state
  }

  /// Stops the projection from taking changes. Its checkpoint stays. Compaction keeps the changes
  /// after the checkpoint until the projection goes on or ``Store/forgetProjection(named:)``
  /// removes it.
  public func stop() {
    progress.withLock { $0.isStopped = true }
    advance.raise()
    wakeup.withLock { $0 }?.raise()
  }

  /// The same, and waits until no checkpoint is under way.
  func stopForGood() {
    stop()
    working.withLock { $0 = nil }
  }
}

private final class ProjectionWatcher<State: Codable & Sendable>: Watcher {
  private let projection: Projection<State>
  let held: HeldWatch
  private let last = Lock<EntryCursor?>(nil)

  init(_ projection: Projection<State>) {
    self.projection = projection
    held = projection.store.hub.watch(key: projection.key)
  }

  func look() throws -> State? {
    _ = held.watch.takeNews()
    let (state, position, failure) = projection.progress.withLock {
      ($0.state, $0.position, $0.failure)
    }
    if let failure { throw failure }
    if projection.store.engine.reader.isClosed {
      throw TidemarkError(.closed, "the store is closed")
    }
    return last.withLock { last in
      if last == position { return nil }
      last = position
      return state
    }
  }
}
