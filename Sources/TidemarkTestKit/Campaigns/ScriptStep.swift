/// One step of a ``Script``: something that a program may do to a store, or that may befall it.
///
/// A step says what happens and nothing about how; whoever runs a script carries the steps out
/// on a store and on a ``ModelStore`` and compares.
public enum ScriptStep: Sendable, Hashable {
  /// A put, delete or touch on its own.
  case write(ScriptWrite)
  /// Several writes, all or nothing.
  case batch([ScriptWrite])
  /// A put that is to happen only if the key is as expected.
  case compareAndPut(ScriptWrite, ScriptExpectation)
  /// Brings back the state at a point, by new entries.
  case undo(since: ScriptPoint)
  /// Deletes every key.
  case clear

  /// Asks for everything so far to be durable.
  case flush
  /// Writes an index image.
  case snapshot
  /// Rewrites segments; history stays.
  case compact
  /// Rewrites segments and gives history up.
  case compactDroppingHistory
  /// Closes the store, removes all index images and opens it again.
  case loseImages
  /// Closes the store and opens it again.
  case closeAndReopen
  /// Kills the process without closing, and opens the store again.
  case kill
  /// Cuts the power and opens the store again; the number decides what survives.
  case powerCut(UInt64)
  /// Writes at another durability from now on.
  case durability(ScriptDurability)
  /// Lets so many milliseconds pass.
  case advanceClock(Int)
  /// Sets the time of day forward or back by so many seconds.
  case jumpClock(Int)

  /// Reads a key.
  case get(ScriptBytes)
  /// Reads what a query asks for.
  case scan(ModelQuery)
  /// Reads what a query asks for, as of a point.
  case view(ScriptPoint, ModelQuery)
  /// Opens a view at a point and keeps it open; it must answer the same whatever happens.
  case holdView(ScriptPoint)
  /// Reads all of the oldest view that is held, and lets go of it.
  case releaseView
  /// Reads the history of a key.
  case history(ScriptBytes)
  /// Compares two points.
  case difference(ScriptPoint, ScriptPoint)
  /// Reads all entries after a point.
  case entries(since: ScriptPoint)
  /// Checks the whole store.
  case verify

  /// The writes that it contains.
  public var writes: [ScriptWrite] {
    switch self {
    case .write(let write), .compareAndPut(let write, _): [write]
    case .batch(let writes): writes
    default: []
    }
  }

  /// The kind of a step, without its details.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case put, cache, evict, delete, touch, batch, compareAndPut, undo, clear
    case flush, snapshot, compact, compactDroppingHistory, loseImages
    case closeAndReopen, kill, powerCut, durability, advanceClock, jumpClock
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
    case .loseImages: .loseImages
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

/// A write of a script.
public struct ScriptWrite: Sendable, Hashable {
  /// The operation of the write.
  public var operation: ModelEntry.Operation
  /// The key.
  public var key: ScriptBytes
  /// The value; empty unless this is a put.
  public var value: ScriptBytes
  /// The labels; empty unless this is a put.
  public var labels: [ScriptBytes]
  /// The validator hash; empty for none.
  public var hash: ScriptBytes

  /// Creates a write.
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

  /// The entry that it makes in a model.
  public var entry: ModelEntry {
    ModelEntry(
      operation, key.bytes, value: value.bytes, labels: Set(labels.map(\.bytes)),
      hash: hash.bytes)
  }
}

/// The expectation that a compare-and-put of a script has of its key.
public enum ScriptExpectation: String, Sendable, Hashable, CaseIterable {
  /// That it is absent.
  case absent
  /// The sequence that it has: the put happens if the key is there.
  case current
  /// A sequence that it does not have: the put must not happen.
  case outdated
}

/// How sure a write of a script is to be kept when it is acknowledged.
public enum ScriptDurability: String, Sendable, Hashable, CaseIterable {
  case async, buffered, durable
}

/// A point in the history, as a share of it, so that it means something in a shorter script too.
public struct ScriptPoint: Sendable, Hashable {
  /// How far it is from the oldest sequence to the newest, 0 to 1000.
  public var permille: Int

  /// Creates a point; numbers out of range are moved into it.
  public init(permille: Int) { self.permille = min(max(permille, 0), 1000) }

  /// The sequence that it means.
  /// - Parameters:
  ///   - oldest: the first sequence that can be asked for.
  ///   - newest: the last one.
  public func sequence(from oldest: UInt64 = 0, to newest: UInt64) -> UInt64 {
    guard newest > oldest else { return newest }
    let product = (newest - oldest).multipliedFullWidth(by: UInt64(permille))
    return oldest + UInt64(1000).dividingFullWidth(product).quotient
  }
}
