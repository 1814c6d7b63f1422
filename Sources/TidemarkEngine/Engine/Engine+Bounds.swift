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
  /// Counts up when the history lost entries that were seen.
  package var lineage: Int
  /// Up to here all lineages are the same.
  package var commonThrough: UInt64
}

extension Engine {
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

  /// Sequences mean the same as long as it does: it is another one after a store was resumed that
  /// somebody else had written to.
  package var lineage: Int { reading.withLock { $0.lineage } }

  /// Whether the store was closed.
  package var isClosed: Bool { reading.withLock { $0.isClosed } }
}

extension ReadState {
  var bounds: LogBounds {
    LogBounds(
      historyFrom: manifest.historyFrom, droppedThrough: manifest.droppedThrough,
      epochs: manifest.epochs, visible: visible, durable: durable, opening: opening,
      lineage: lineage, commonThrough: commonThrough)
  }
}
