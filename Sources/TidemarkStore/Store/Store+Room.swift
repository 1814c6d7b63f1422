internal import TidemarkEngine

// Making room on a full disk at the cost of caches. An evicted entry is superseded in the log; its
// space is free only once a compaction has rewritten its segment, or its attachment's file is gone.
extension Store {
  /// Frees disk space: of entries that caches have evicted already, else of entries that it evicts,
  /// twice as many bytes in each round. The caller holds neither the caches' lock nor the writer's,
  /// which evicting takes.
  /// - Parameters:
  ///   - bytes: how much is needed.
  ///   - isFull: whether a write has failed with `noSpace`. If not, the active segment is not
  ///     sealed, and there is one round, of `bytes` or `leastEvicted`, whichever is more.
  /// - Returns: whether any space was freed, so that it pays to try the write again.
  func makeRoom(for bytes: Int, isFull: Bool = true) -> Bool {
    // An error here is dropped: the write that needs the room fails with its own.
    do throws(TidemarkError) {
      if try freeEvicted(isFull) { return true }
      guard try mayFree(bytes) else { return false }
      var goal = max(bytes, Self.leastEvicted)
      // While views or damage keep evicted entries, evicting frees nothing.
      while !engine.autoCompactor.keepsCached, try caches.evict(goal) {
        if try freeEvicted(isFull) { return true }
        guard isFull else { return false }
        goal *= 2
      }
      return false
    } catch { return false }
  }

  /// The least bytes of entries to evict at a time. Where a full disk has no room for the evictions
  /// themselves, as many bytes of the ballast, a file that sets space aside, are released for them.
  package static let leastEvicted = 64 << 10

  /// Whether free space and all that eviction can free may suffice for a write. If not, caches are
  /// not emptied for a write that fails all the same.
  private func mayFree(_ bytes: Int) throws(TidemarkError) -> Bool {
    // Where the system does not tell the free space, the write has to show.
    guard let free = engine.freeBytes else { return true }
    let lack = bytes - free - engine.autoCompactor.looseBytes
    if lack <= 0 { return true }
    return try caches.heldBytes(upTo: lack) >= lack
  }

  /// Removes attachments of evicted entries from the disk, or else the entries from the log, one
  /// segment at a time, since rewriting a segment takes some room first.
  /// - Parameter isFull: whether the active segment may be sealed, so that it is compacted, too.
  /// - Returns: whether space was freed.
  private func freeEvicted(_ isFull: Bool) throws(TidemarkError) -> Bool {
    if try engine.sweepAttachments().removedBytes > 0 { return true }
    return try engine.autoCompactor.purgeCaches(seals: isFull)
  }

  /// Evicts cached entries before a put would take the free space that the next compaction needs to
  /// rewrite a segment; only on a disk that is hardly larger than the caches. The put goes on even
  /// if too little was freed.
  func keepReserve(for operations: OperationBatch) {
    var lack = engine.autoCompactor.lackingBytes(for: operations.storedBound)
    while lack > 0, makeRoom(for: lack, isFull: false) {
      let rest = engine.autoCompactor.lackingBytes(for: operations.storedBound)
      // The space of a deleted file is not free while a reader has it open, whatever is evicted.
      guard rest < lack else { return }
      lack = rest
    }
  }
}
