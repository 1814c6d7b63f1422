internal import TidemarkEngine

extension Store {
  /// Makes room on a full disk: what caches have given up goes, then what they would give up next,
  /// more and more until the disk has some back. Values of the log take some room first: of one of
  /// its files at least that has much to lose, the rest is written anew. While views or damage keep
  /// what is given up, nothing would come of it.
  /// - Parameters:
  ///   - bytes: how much is needed.
  ///   - isFull: whether a write has failed with `noSpace`. If not, the active segment is not
  ///     sealed, and no more than `bytes` are evicted.
  /// - Returns: whether there is more room now.
  func makeRoom(for bytes: Int, isFull: Bool = true) -> Bool {
    do throws(TidemarkError) {
      if try giveBack(isFull) { return true }
      guard try holdsRoom(for: bytes) else { return false }
      var goal = max(bytes, Self.leastEvicted)
      while !engine.autoCompactor.keepsCached, try caches.evict(goal) {
        if try giveBack(isFull) { return true }
        guard isFull else { return false }
        goal *= 2
      }
      return false
    } catch { return false }
  }

  /// Bytes of entries that are evicted at a time on a full disk, at least. Where the evictions
  /// themselves cannot be written, as many bytes of the ballast file are released for them.
  package static let leastEvicted = 64 << 10

  /// Whether free space and all that eviction can free may suffice for a write. If not, caches are
  /// not emptied for a write that fails all the same.
  private func holdsRoom(for bytes: Int) throws(TidemarkError) -> Bool {
    guard let free = engine.freeBytes else { return true }
    let lack = bytes - free - engine.autoCompactor.looseBytes
    if lack <= 0 { return true }
    return try caches.heldBytes(upTo: lack) >= lack
  }

  /// Removes attachments and log entries of evicted cached values from the disk.
  /// - Parameter isFull: whether the active segment may be sealed, so that it is compacted, too.
  private func giveBack(_ isFull: Bool) throws(TidemarkError) -> Bool {
    if try engine.sweepAttachments().removedBytes > 0 { return true }
    return try engine.autoCompactor.purgeCaches(seals: isFull)
  }

  /// Evicts cached entries before a put would take the free space that the next compaction needs,
  /// on a disk that is hardly larger than the caches.
  func keepReserve(for operations: OperationBatch) {
    var lack = engine.autoCompactor.lackingBytes(for: operations.storedBound)
    while lack > 0, makeRoom(for: lack, isFull: false) {
      let rest = engine.autoCompactor.lackingBytes(for: operations.storedBound)
      // The space of a deleted file is not free while a reader has it open. Evicting more would not
      // change that.
      guard rest < lack else { return }
      lack = rest
    }
  }
}
