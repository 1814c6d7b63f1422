/// One step of a ``Script``: something that a program may do to a store, or that may befall it.
///
/// A step says what happens and nothing about how; whoever runs a script carries the steps out
/// on a store and on a ``ModelStore`` and compares.
public enum ScriptStep: Sendable, Hashable {
  /// Writes one put, delete or touch.
  case write(ScriptWrite)
  /// Writes several entries as one batch, all or nothing.
  case batch([ScriptWrite])
  /// Writes a put that must only happen if the key is as expected.
  case compareAndPut(ScriptWrite, ScriptExpectation)
  /// Brings back the state at an earlier point, by new entries.
  case undo(since: ScriptPoint)
  /// Deletes every key of the store.
  case clear

  /// Waits until every write so far is durable.
  case flush
  /// Writes a sorted run of the index.
  case snapshot
  /// Compacts the store's segments and keeps the history.
  case compact
  /// Compacts the store's segments and drops the history.
  case compactDroppingHistory
  /// Closes the store, removes the index's files from the disk, and opens the store again, which
  /// then rebuilds the index from the log.
  case loseRuns
  /// Closes the store and opens it again.
  case closeAndReopen
  /// Kills the process without closing, and opens the store again.
  case kill
  /// Cuts the power and opens the store again; the number decides what survives.
  case powerCut(UInt64)
  /// Uses another durability for all later writes.
  case durability(ScriptDurability)
  /// Lets a number of milliseconds pass.
  case advanceClock(Int)
  /// Sets the time of day forward or back by a number of seconds.
  case jumpClock(Int)

  /// Reads the value of one key.
  case get(ScriptBytes)
  /// Reads the rows of a query.
  case scan(ModelQuery)
  /// Reads the rows of a query as of an earlier point.
  case view(ScriptPoint, ModelQuery)
  /// Opens a view at a point and keeps it open. The view must answer the same whatever happens
  /// later.
  case holdView(ScriptPoint)
  /// Reads all rows of the oldest open view, and closes it.
  case releaseView
  /// Reads all versions of one key.
  case history(ScriptBytes)
  /// Reads the keys that differ between two points.
  case difference(ScriptPoint, ScriptPoint)
  /// Reads all entries after a point.
  case entries(since: ScriptPoint)
  /// Verifies the whole store.
  case verify

  /// The writes of the step; empty for a step that writes nothing.
  public var writes: [ScriptWrite] {
    switch self {
    case .write(let write), .compareAndPut(let write, _): [write]
    case .batch(let writes): writes
    default: []
    }
  }

  /// The kind of a step, without its details.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// The kinds of steps that write to the store.
    case put, cache, evict, delete, touch, batch, compareAndPut, undo, clear
    /// The kinds of steps that maintain the store: durability, sorted runs and compaction.
    case flush, snapshot, compact, compactDroppingHistory, loseRuns
    /// The kinds of steps that stop the store or change its environment.
    case closeAndReopen, kill, powerCut, durability, advanceClock, jumpClock
    /// The kinds of steps that read from the store and compare with the model.
    case get, scan, view, holdView, releaseView, history, difference, entries, verify
  }

  /// The kind of the step, without the details.
  public var kind: Kind {
    switch self {
    case .write(let write):
      switch write.operation {
      case .put: .put
      case .cache: .cache
      case .evict: .evict
      case .delete: .delete
      case .touch: .touch
      }
    case .batch: .batch
    case .compareAndPut: .compareAndPut
    case .undo: .undo
    case .clear: .clear
    case .flush: .flush
    case .snapshot: .snapshot
    case .compact: .compact
    case .compactDroppingHistory: .compactDroppingHistory
    case .loseRuns: .loseRuns
    case .closeAndReopen: .closeAndReopen
    case .kill: .kill
    case .powerCut: .powerCut
    case .durability: .durability
    case .advanceClock: .advanceClock
    case .jumpClock: .jumpClock
    case .get: .get
    case .scan: .scan
    case .view: .view
    case .holdView: .holdView
    case .releaseView: .releaseView
    case .history: .history
    case .difference: .difference
    case .entries: .entries
    case .verify: .verify
    }
  }
}

/// One write in a ``Script``: an operation on a key, with its value, labels and hash.
public struct ScriptWrite: Sendable, Hashable {
  /// What the write does to its key, such as put or delete.
  public var operation: ModelEntry.Operation
  /// The key that is written.
  public var key: ScriptBytes
  /// The value of a put; empty for other operations.
  public var value: ScriptBytes
  /// The labels of a put; empty for other operations.
  public var labels: [ScriptBytes]
  /// The validator hash of a put; empty for none.
  public var hash: ScriptBytes

  /// Creates a write of a script.
  /// - Parameters:
  ///   - operation: what the write does to its key.
  ///   - key: the key.
  ///   - value: the value of a put.
  ///   - labels: the labels of a put.
  ///   - hash: the validator hash; empty for none.
  public init(
    _ operation: ModelEntry.Operation, _ key: ScriptBytes, _ value: ScriptBytes = .literal([]),
    labels: [ScriptBytes] = [], hash: ScriptBytes = .literal([])
  ) {
    self.operation = operation
    self.key = key
    self.value = value
    self.labels = labels
    self.hash = hash
  }

  /// The entry that the write makes in a ``ModelStore``.
  public var entry: ModelEntry {
    ModelEntry(
      operation, key.bytes, value: value.bytes, labels: Set(labels.map(\.bytes)),
      hash: hash.bytes)
  }
}

/// What a compare-and-put of a script expects of its key.
public enum ScriptExpectation: String, Sendable, Hashable, CaseIterable {
  /// The put expects that the key is absent.
  case absent
  /// The put expects the key's current sequence, so that it happens if the key exists.
  case current
  /// The put expects a sequence that the key does not have, so that it must not happen.
  case outdated
}

/// The durability of a script's writes, as in `Store.Configuration`.
public enum ScriptDurability: String, Sendable, Hashable, CaseIterable {
  /// The durabilities by name, from the fastest to the safest.
  case async, buffered, durable
}

/// A point in a store's history, as a share of its length, so that the point also exists after a
/// script was shortened.
public struct ScriptPoint: Sendable, Hashable {
  /// The share of the way from the oldest sequence to the newest, from 0 to 1000.
  public var permille: Int

  /// Creates a point from a share of 0 to 1000. Other numbers are moved into this range.
  public init(permille: Int) { self.permille = min(max(permille, 0), 1000) }

  /// Returns the sequence at the point's share of a history.
  /// - Parameters:
  ///   - oldest: the first sequence of the history.
  ///   - newest: the last sequence of the history.
  public func sequence(from oldest: UInt64 = 0, to newest: UInt64) -> UInt64 {
    guard newest > oldest else { return newest }
    let product = (newest - oldest).multipliedFullWidth(by: UInt64(permille))
    return oldest + UInt64(1000).dividingFullWidth(product).quotient
  }
}
