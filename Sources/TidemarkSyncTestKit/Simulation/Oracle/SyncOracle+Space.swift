internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// History that a compaction must have let go.
extension SyncOracle {
  /// Only the newest version of a key is left, unless something of the key is pending: then also
  /// the one that this was made upon. Deletes are left that are pending, and own ones that the feed
  /// may have where it was not read yet. Keys of a batch in flight are left out: until it is
  /// answered nobody knows which of their versions the feed has.
  /// - Parameter isForgotten: nothing is kept for a peer any more.
  func checkSpace(of device: SimulatedDevice, isForgotten: Bool = false) throws {
    let engine = device.engine
    let session = device.session
    var versions: [[UInt8]: [LogEntry]] = [:]
    var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
    while let entry = try cursor.next() {
      // Cached values have rules of their own.
      if try entry.attributes().entryClass == .owned {
        versions[entry.key, default: []].append(entry)
      }
    }
    let inFlight = Set(session.batchInFlight?.items.map(\.sequence) ?? [])
    for (key, entries) in versions {
      if !isForgotten, entries.contains(where: { inFlight.contains($0.sequence) }) { continue }
      guard let newest = try engine.reader.slot(ofKey: key.rawSpan) else {
        throw BrokenPromise("d\(device.index) keeps \(name(key)), which its index does not know")
      }
      let pending = try entries.count { entry in
        try !isForgotten && entry.attributes().origin == nil
          && session.isStillPending(entry.sequence)
      }
      if newest.size.isCached { continue }
      // A touch needs the put that it renews.
      let put = try engine.reader.entry(at: newest.sequence).head.valueSequence
      // A pending entry may have been made upon whatever was not settled before.
      let settled = pending > 0 ? session.pin?.acknowledgedThrough ?? 0 : UInt64.max
      var older = entries.count {
        $0.sequence < newest.sequence && $0.sequence != put && $0.sequence <= settled
      }
      if newest.isDeleted {
        let isNeeded =
          !isForgotten && (pending > 0 || session.mayReadPast(newest.sequence))
        if !isNeeded { older += 1 }
      }
      guard older > 2 * pending else { continue }
      throw BrokenPromise(
        "d\(device.index) keeps \(older) entries of \(name(key)) too many after a compaction")
    }
  }
}

extension SyncSession {
  /// Whether the peer has yet to decide on an own entry.
  fileprivate func isStillPending(_ sequence: UInt64) -> Bool {
    // Also what was written down as such.
    isPending(sequence) || sequence > pin?.frontier ?? 0
      || pin?.pending.contains(sequence) ?? false
  }

  /// Whether something of others may come that stands in the feed before an own change, or may have
  /// stood there before the feed was restored.
  fileprivate func mayReadPast(_ sequence: UInt64) -> Bool {
    sequence >= pin?.unread ?? .max
      || acknowledged.runs.contains {
        $0.first <= sequence && $0.lastOffset > progress.cursor.offset
      }
  }
}
