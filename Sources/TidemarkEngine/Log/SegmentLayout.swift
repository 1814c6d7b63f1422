/// How a compaction packs values into a segment. History: superseded versions, in frames apart.
package struct SegmentLayout: Sendable, Hashable {
  /// A block is closed once it holds this many raw bytes; at most `Limits.blockBytes`.
  package var blockTarget: Int
  /// zstd's level; nil stores everything raw.
  package var level: Int32?
  /// A trained dictionary that everything but history is compressed with.
  package var dictionary: [UInt8]?
  /// Like `blockTarget`, for blocks of history; at most `Limits.historyBlockBytes`.
  package var historyTarget: Int
  /// Like `level`, for history.
  package var historyLevel: Int32?

  package init(
    blockTarget: Int = Limits.blockBytes, level: Int32? = FrameCodecs.compactionLevel,
    dictionary: [UInt8]? = nil, historyTarget: Int = Limits.historyTargetBytes,
    historyLevel: Int32? = FrameCodecs.historyLevel
  ) {
    self.blockTarget = blockTarget
    self.level = level
    self.dictionary = dictionary
    self.historyTarget = historyTarget
    self.historyLevel = level == nil ? nil : historyLevel
  }
}
