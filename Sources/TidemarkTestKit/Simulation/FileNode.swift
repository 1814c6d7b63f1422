/// A file on a simulated disk: what a process sees, what would survive, and the changes between.
struct FileNode: Sendable {
  /// The unit that a disk writes whole or not at all, or torn.
  static let sectorBytes = 512

  /// A change that was not synced yet.
  struct Change: Sendable {
    enum Effect: Sendable {
      case write(offset: Int, bytes: [UInt8], extends: Bool)
      case resize(length: Int)
      case reserve(length: Int)
    }

    var stamp: Int
    var effect: Effect

    var changesLength: Bool {
      if case .write(_, _, let extends) = effect { return extends }
      return true
    }
  }

  /// The bytes that reads return.
  private(set) var visible = PagedBytes()
  /// The bytes that a power cut cannot take.
  private(set) var durable = PagedBytes()
  /// The bytes that were durable before the last sync.
  private(set) var previous = PagedBytes()
  /// In order, the oldest first.
  private(set) var pending: [Change] = []
  /// The next sync has a failure to report.
  private(set) var owesError = false
  /// Whether `durable` with all of `pending` gives `visible`: not after a failure that left
  /// pages clean.
  private var isFaithful = true

  mutating func write(_ bytes: [UInt8], at offset: Int, stamp: Int, lost: Bool = false) {
    let end = offset + bytes.count
    let extends = end > visible.length
    visible.write(bytes, bytes.indices, at: offset)
    visible.extend(to: end)
    if lost {
      isFaithful = false
      owesError = true
    } else {
      let effect = Change.Effect.write(offset: offset, bytes: bytes, extends: extends)
      pending.append(Change(stamp: stamp, effect: effect))
    }
  }

  mutating func resize(to length: Int, stamp: Int) {
    visible.setLength(length)
    pending.append(Change(stamp: stamp, effect: .resize(length: length)))
  }

  mutating func reserve(to length: Int, stamp: Int) {
    visible.reserve(to: length)
    pending.append(Change(stamp: stamp, effect: .reserve(length: length)))
  }

  /// Makes everything durable.
  mutating func sync() {
    previous = durable
    if isFaithful {
      durable = visible
    } else {
      for change in pending { change.apply(to: &durable) }
      durable.trim()
    }
    pending = []
  }

  /// Claims to sync, and has something to confess the next time.
  mutating func syncLater() { owesError = true }

  /// Fails to sync and forgets which bytes were new.
  mutating func leaveClean() {
    owesError = false
    if !pending.isEmpty { isFaithful = false }
    pending = []
  }

  /// Fails to sync and goes back to what is durable.
  mutating func revert() {
    visible = durable
    pending = []
    isFaithful = true
  }

  /// Changes bytes behind everybody's back, in the view and on the disk.
  mutating func corrupt(_ change: (inout PagedBytes) -> Void) {
    change(&visible)
    change(&durable)
  }

  /// The bytes that the machine finds after a power cut become the file.
  mutating func settle(_ decider: inout SurvivalDecider, stale: () -> [UInt8]) {
    if pending.isEmpty, isFaithful, !owesError {
      previous = durable
      return
    }
    if !pending.isEmpty { durable = surviving(&decider, stale: stale) }
    visible = durable
    previous = durable
    pending = []
    owesError = false
    isFaithful = true
  }
}

extension FileNode.Change {
  /// Makes the change without doubt.
  func apply(to bytes: inout PagedBytes) {
    switch effect {
    case .write(let offset, let new, let extends):
      bytes.write(new, new.indices, at: offset)
      if extends { bytes.extend(to: offset + new.count) }
    case .resize(let length): bytes.setLength(length)
    case .reserve(let length): bytes.reserve(to: length)
    }
  }
}
