/// What a new sorted run is told: the facts for its header, and which keys it leaves out.
package struct RunInfo: Sendable {
  /// The store, 16 bytes.
  package var storeID: [UInt8]
  /// A number that no other sorted run of the store has.
  package var runID: UInt64
  /// The sorted run covers all entries up to and including this one.
  package var sequence: UInt64
  /// Bytes that the owner wants to keep beside the sorted run; at most 1 MiB.
  package var userInfo: [UInt8]
  /// Deleted keys whose delete is at or below this leave the index, but for those in `keptDeletes`:
  /// a compaction lets these deletes go from the log.
  package var dropTombstonesThrough: UInt64
  /// Keys whose cached value was evicted at or below this leave the index: no view needs them.
  package var dropEvictionsThrough: UInt64 = 0
  /// Sequences of deletes that stay in the index, since the log keeps them.
  package var keptDeletes: Set<UInt64> = []
  /// Whether the lists of a label also name keys that have lost it, for views of the past.
  /// A sorted run over other ones names them in any case, since it overrides the lists beneath.
  package var keepFormerMembers: Bool
  /// Drawn for this sorted run; nil when it is not to be encrypted.
  package var fileKey: NewFileKey?

  package init(
    storeID: [UInt8], runID: UInt64, sequence: UInt64, userInfo: [UInt8] = [],
    dropTombstonesThrough: UInt64 = 0, keepFormerMembers: Bool = true
  ) {
    self.storeID = storeID
    self.runID = runID
    self.sequence = sequence
    self.userInfo = userInfo
    self.dropTombstonesThrough = dropTombstonesThrough
    self.keepFormerMembers = keepFormerMembers
  }
}

/// Writes a sorted run of the index: the merge of a frozen (immutable) memtable and the newest
/// sorted runs, whose place it takes. Its key count is at most `mostKeys`.
package enum RunWriter {
  /// Writes a sorted run into an empty file, the header last; does not sync, which its caller must
  /// do.
  ///
  /// Streams keys and slots. In memory are the hash table (6.7 bytes a key), the ordinals per
  /// label (4 bytes each) and, where former members are kept, the new ordinals of the keys
  /// (4 bytes each).
  package static func write(
    _ input: MergeInput, to file: any File, info: RunInfo
  ) throws(IndexError) {
    guard info.storeID.count == 16, info.userInfo.count <= RunLayout.longestUserInfo,
      info.sequence <= Slot.maxSequence, info.sequence >= input.base,
      input.mostKeys <= RunLayout.mostKeys
    else { throw IndexError.limitExceeded }
    guard input.totalLiveKeys >= 0, input.totalLiveKeys <= RunLayout.mostKeys else {
      throw Self.wrongCount
    }
    var header = RunHeader(
      storeID: info.storeID, runID: info.runID, sequence: info.sequence, seed: input.seed)
    header.base = input.base
    header.nextLabel = Int(input.labels.nextID)
    header.nextSet = Int(input.sets.nextID)
    header.totalLiveKeys = input.totalLiveKeys
    var writer = SectionWriter(file, header, info.fileKey)
    var keys = try MergedKeys(input, info)
    try keys.write(to: &writer)
    // A sorted run over no other one has all keys, so that its count must be the one that was kept.
    guard !input.isWhole || keys.liveCount == input.totalLiveKeys else { throw Self.wrongCount }
    var labels = MergedLabels(input, keys)
    try labels.write(to: &writer)
    try writer.write(.userInfo, info.userInfo.rawSpan, count: info.userInfo.count)
    try writer.finish { header in
      header.keys = keys.count
      header.liveKeys = keys.liveCount
      header.deletedKeys = keys.deletedCount
      header.longestProbe = keys.longestProbe
    }
  }

  private static var wrongCount: IndexError {
    .runInvalid(FormatError("the number of live keys differs"))
  }
}
