internal import TidemarkEngine

extension LogBounds {
  /// The cursor behind a sequence.
  package func cursor(at sequence: UInt64) -> Cursor {
    Cursor(epoch: epoch(of: sequence), sequence: sequence)
  }

  /// Checks that a cursor speaks of entries that this store gave out.
  /// - Throws: `historyDiverged` when it does not.
  package func check(_ cursor: Cursor) throws(TidemarkError) {
    if cursor.sequence == 0 { return }
    guard let i = epochs.firstIndex(where: { $0.epoch == cursor.epoch }) else {
      throw Self.diverged("the store does not know the cursor's epoch", cursor)
    }
    let last = i + 1 < epochs.count ? epochs[i + 1].firstSequence - 1 : visible
    guard cursor.sequence <= last else {
      throw Self.diverged("the cursor lies beyond the end of its epoch at \(last)", cursor)
    }
    guard cursor.sequence >= epochs[i].firstSequence else {
      throw Self.diverged("the cursor lies before the beginning of its epoch", cursor)
    }
  }

  private static func diverged(_ reason: String, _ cursor: Cursor) -> TidemarkError {
    TidemarkError(
      .historyDiverged,
      "\(reason): entries that were seen are gone, or it is another store's; "
        + "read the state anew and follow from there",
      sequences: cursor.sequence...cursor.sequence)
  }
}
