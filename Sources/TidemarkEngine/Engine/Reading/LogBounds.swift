/// Which sequences the log has, and in which epochs (random numbers, one of each opening that has
/// written): after a crash a sequence may name another entry, in another epoch.
package struct LogBounds: Sendable {
  /// The oldest state that a view can show; below it superseded versions are gone. 1: all are kept.
  package var historyFrom: UInt64
  /// The highest tombstone that compaction dropped: who has read less may have missed a delete.
  package var droppedThrough: UInt64
  package var epochs: [Manifest.Epoch]
  /// The highest sequence that readers see.
  package var visible: UInt64
  /// The highest sequence known to be on the disk.
  package var durable: UInt64
  /// Counts how often the state was read again from the disk, after which another process may have
  /// dropped or rewritten entries: followers then compare epochs and begin again.
  package var reopenCount: Int

  /// The epoch in which a sequence was given out; 0 for none that is known.
  package func epoch(of sequence: UInt64) -> UInt64 {
    epochs.last { $0.firstSequence <= sequence }?.epoch ?? 0
  }
}

extension Reader {
  /// The bounds now.
  /// - Throws: `closed`, `suspended`.
  package func bounds() throws(TidemarkError) -> LogBounds {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return read.bounds
    }
  }

  /// The bounds without a check, also of a closed or suspended store.
  package var lastBounds: LogBounds { reading.withLock { $0.bounds } }

  /// The same as long as no entry can have left the log, by a compaction or another process.
  package var generation: Int { reading.withLock { $0.reopenCount + $0.rewriteCount } }
}

extension ReadState {
  var bounds: LogBounds {
    LogBounds(
      historyFrom: manifest.historyFrom, droppedThrough: manifest.droppedThrough,
      epochs: manifest.epochs, visible: visible, durable: durable, reopenCount: reopenCount)
  }
}
