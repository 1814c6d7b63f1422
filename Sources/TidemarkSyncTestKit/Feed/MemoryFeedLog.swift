package import TidemarkEngine
package import TidemarkSync
package import TidemarkSyncServer

/// The log of a ``MemoryFeed``: entries one behind the other, and how many of them are on the disk.
package struct MemoryFeedLog: Sendable {
  /// A change with everything that readers may ask of it.
  package struct Change: Sendable {
    package var head: FeedHead
    package var value: [UInt8]
  }

  package enum Entry: Sendable {
    case change(Change)
    /// A change that was kept beside what it lost to.
    case loser(Change)
    case record(RecordType, key: [UInt8], value: [UInt8])
  }

  package let id: ReplicaID
  /// The entry at an offset stands at one less; nil for what was dropped.
  package private(set) var entries: [Entry?] = []
  private var epochs: [FeedEpoch] = []
  private var truncatedThrough: UInt64 = 0
  /// Entries that others up to here supersede may be gone.
  private(set) var droppedThrough: UInt64 = 0
  /// Everything up to here is on the disk.
  package var durable: UInt64 = 0
  /// The last offset of every commit.
  package var commits: [UInt64] = []

  /// An empty log.
  package init(id: ReplicaID) { self.id = id }

  package var head: UInt64 { UInt64(entries.count) }

  package var range: FeedRange {
    FeedRange(epochs: epochs, head: head, truncatedThrough: truncatedThrough)
  }

  package func position(of offset: UInt64) -> FeedPosition {
    var range = range
    range.head = max(range.head, offset)
    return range.position(ofOffset: offset)
  }

  package func change(at offset: UInt64) -> Change? {
    guard offset > 0, offset <= head, case .change(let change)? = entries[Int(offset - 1)] else {
      return nil
    }
    return change
  }

  mutating func begin(_ epoch: UInt64) {
    if epochs.last?.firstOffset == head + 1 { epochs.removeLast() }
    epochs.append(FeedEpoch(epoch: epoch, firstOffset: head + 1))
    if epochs.count > Limits.epochs { epochs.removeFirst() }
  }

  mutating func append(_ entry: Entry) { entries.append(entry) }

  /// The log after a cut of the power: of the commits that were not on the disk some are left, from
  /// the first of them on.
  package mutating func cutPower(keeping chance: UInt64) {
    let lost = commits.filter { $0 > durable }
    let kept = lost.prefix(Int(chance % UInt64(lost.count + 1))).last ?? durable
    entries.removeLast(entries.count - Int(kept))
    commits.removeAll { $0 > kept }
    epochs.removeAll { $0.firstOffset > kept + 1 }
  }

  /// Drops what later entries have replaced, and deletes up to an offset.
  mutating func compact(
    _ index: MemoryFeedIndex, keepingDeletesBehind limit: UInt64
  ) -> (entries: Int, deletes: Int) {
    var dropped = (entries: 0, deletes: 0)
    droppedThrough = durable
    // A replacement must be on the disk itself.
    for offset in 1...max(1, durable) where offset <= durable {
      let place = Int(offset - 1)
      switch entries[place] {
      case .change(let change):
        let newest = index.states[change.head.key]?.position.offset ?? offset
        let isDelete = change.head.kind == .delete && newest == offset && offset <= limit
        guard newest > offset && newest <= durable || isDelete else { continue }
        if isDelete {
          truncatedThrough = max(truncatedThrough, offset)
          dropped.deletes += 1
        }
      case .loser: break
      case .record(let type, let key, let value):
        let newest = index.records[type]?[key]
        guard newest.map({ $0 > offset && $0 <= durable }) ?? value.isEmpty else { continue }
      case nil: continue
      }
      entries[place] = nil
      dropped.entries += 1
    }
    return dropped
  }
}

/// The state of keys, replicas and policies at the end of a log.
struct MemoryFeedIndex: Sendable {
  private(set) var states: [[UInt8]: FeedState] = [:]
  private(set) var marks: [ReplicaID: FeedMark] = [:]
  var leases: [ReplicaID: FeedLease] = [:]
  private(set) var policies = PolicyTable()
  /// The offset of the newest record of a name; none where that took the name away.
  private(set) var records: [RecordType: [[UInt8]: UInt64]] = [:]

  init(_ log: MemoryFeedLog) throws(TidemarkError) {
    for (place, entry) in log.entries.enumerated() {
      if let entry { try note(entry, at: log.position(of: UInt64(place + 1))) }
    }
  }

  mutating func note(
    _ entry: MemoryFeedLog.Entry, at position: FeedPosition
  ) throws(TidemarkError) {
    switch entry {
    case .loser: return
    case .change(let change):
      states[change.head.key] = FeedState(
        head: change.head, position: position, revision: change.head.offset)
    case .record(let type, let key, let value):
      records[type, default: [:]][key] = value.isEmpty ? nil : position.offset
      switch type {
      case .feedPolicy: try policies.set(value, for: key, at: position.offset)
      case .feedMark: marks[ReplicaID(padding: key)] = try FeedMark(value, at: position)
      default: leases[ReplicaID(padding: key)] = try? FeedLease(decoding: value.rawSpan)
      }
    }
  }

  /// Whether mark, policies and revisions are as a batch was judged by.
  func stands(_ batch: DecidedBatch, after view: FeedView) -> Bool {
    let mark = marks[batch.request.replica] ?? FeedMark()
    guard mark.mark.precedes(batch.request) || PlantedSyncBug.isOn(.markNotCompared),
      policies.revision == view.policies.revision || PlantedSyncBug.isOn(.policyNotCompared)
    else { return false }
    return batch.entries.allSatisfy { entry in
      guard case .applies(let revision?) = entry.kind else { return true }
      let held = states[batch.request.changes[entry.change].key]
      return revision == (held?.isDeleted == false ? held?.revision : 0)
        || PlantedSyncBug.isOn(.revisionNotCompared)
    }
  }

  /// The least offset behind which some replica with a live lease has yet to read deletes.
  func earliestCursor(at time: UInt64) -> UInt64? {
    leases.lazy.filter { replica, lease in
      lease.isReading(at: time) && (lease.cursor.offset > 0 || marks[replica] != nil)
    }.map(\.value.cursor.offset).min()
  }
}
