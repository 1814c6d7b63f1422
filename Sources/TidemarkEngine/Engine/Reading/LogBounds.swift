/// Between which sequences the log can be read, and in which epochs they were given out.
package struct LogBounds: Sendable {
  /// Views below this sequence are refused; 1 when everything is kept.
  package var historyFrom: UInt64
  /// The highest tombstone that compaction dropped.
  package var droppedThrough: UInt64
  package var epochs: [Manifest.Epoch]
  /// The highest sequence that readers see.
  package var visible: UInt64
  /// The highest sequence known to be on the disk.
  package var durable: UInt64
  /// Counts up when what is kept has changed beneath who follows: begin anew at the position.
  package var opening: Int

  /// The epoch in which a sequence was given out; 0 for none that is known.
  package func epoch(of sequence: UInt64) -> UInt64 {
    epochs.last { $0.firstSequence <= sequence }?.epoch ?? 0
  }
}

extension Reader {
  /// Where the log begins and ends now.
  /// - Throws: `closed`, `suspended`.
  package func bounds() throws(TidemarkError) -> LogBounds {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      try read.checkReadable()
      return read.bounds
    }
  }

  /// Where the log began and ended when the store could last be read.
  package var lastBounds: LogBounds { reading.withLock { $0.bounds } }
}

extension ReadState {
  var bounds: LogBounds {
    LogBounds(
      historyFrom: manifest.historyFrom, droppedThrough: manifest.droppedThrough,
      epochs: manifest.epochs, visible: visible, durable: durable, opening: opening)
  }
}

/// Tells whether a log may lack entries that it had before: it was compacted or read anew since.
package struct LogGeneration: Sendable, Hashable {
  var opening: Int
  var replacements: Int
}

extension Reader {
  /// The log as it is now.
  package var generation: LogGeneration {
    reading.withLock { LogGeneration(opening: $0.opening, replacements: $0.replacements) }
  }
}
