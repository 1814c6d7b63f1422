internal import TidemarkEngine

/// Reads changes from the log for one follower, up to the log's end at the time.
///
/// A pin is an open view: it keeps its state and all entries behind it from compaction, and is held
/// only while there is something to read. A view below `historyFrom` is refused: of entries up to
/// there compaction may have left only the newest of each key.
package struct ChangeReader: Sendable {
  /// After this many entries the pin moves on, so that it keeps little from compaction.
  private static let entriesPerPin = 4096

  private let source: ReadSource
  private let options: ChangeOptions
  /// The last sequence that was read, whether or not it became a change.
  package private(set) var position: UInt64
  /// The end of the log when ``begin()`` looked last; the cursor reads through it.
  private var goal: UInt64 = 0
  /// Keeps entries behind the position; nil while there is nothing to read.
  private var pin: EngineView?
  private var cursor: LogCursor?
  private var sincePin = 0
  /// Dropped deletes up to here have caused a reset already: the follower has none of their keys.
  private var resetThrough: UInt64 = 0
  /// The bounds of the log at the last look; they tell whether it was read anew from disk since.
  private var known: LogBounds?

  package init(_ source: ReadSource, after position: UInt64, options: ChangeOptions) {
    self.source = source
    self.position = position
    self.options = options
  }

  private var engine: Engine { source.engine }

  /// The next change; nil when the position has reached the end of the log.
  package mutating func next() throws(TidemarkError) -> EntryChange? {
    try checkHistoryAfterReopening()
    while true {
      if let pin, sincePin >= Self.entriesPerPin {
        // The old pin may be at `historyFrom`, which the position has yet to reach.
        self.pin = try engine.reader.view(at: max(position, pin.sequence))
        sincePin = 0
      }
      if cursor == nil, try begin() { return .reset(at: .beginning) }
      guard cursor != nil else { return nil }
      guard let found = try cursor?.next() else {
        // Sequences up to the goal that are left hold nothing to tell. Look for a new end.
        position = max(position, goal)
        releasePin()
        continue
      }
      sincePin += 1
      position = found.sequence
      do throws(TidemarkError) {
        if let change = try change(found) { return change }
      } catch {
        // The entry was not delivered: step back, so that it comes once the store is resumed.
        if error.code == .suspended {
          position = found.sequence - 1
          releasePin()
        }
        throw error
      }
    }
  }

  /// While the store was suspended no pin held: another process may have dropped entries behind the
  /// position, or lost some before it in a crash. After that, pin and cursor are made anew.
  /// - Throws: `historyDiverged` when the entry at the position is lost.
  private mutating func checkHistoryAfterReopening() throws(TidemarkError) {
    let bounds = try engine.reader.bounds()
    guard let before = known, bounds.reopenCount != before.reopenCount else {
      known = bounds
      return
    }
    releasePin()
    let epoch = bounds.epoch(of: position)
    // Another epoch: the sequence was lost and given out again. 0 says only that the list of epochs
    // was full and dropped the oldest.
    guard position <= bounds.visible, epoch == before.epoch(of: position) || epoch == 0 else {
      throw TidemarkError(
        .historyDiverged,
        "entries that were seen were lost while the store was suspended; read the state anew and "
          + "follow from there",
        sequences: position...position)
    }
    known = bounds
  }

  /// Pins the entries behind the position and opens the cursor; leaves both nil if there are none.
  /// - Returns: whether the follower has to begin anew, with a reset.
  private mutating func begin() throws(TidemarkError) -> Bool {
    var attempt = 0
    while true {
      let bounds = try engine.reader.bounds()
      known = bounds
      goal = options.delivery == .committed ? bounds.visible : bounds.durable
      guard position < goal else { return false }
      // A view below `historyFrom` is refused; compaction may raise it after the look above.
      do { pin = try engine.reader.view(at: max(position, min(bounds.historyFrom, goal))) } catch {
        attempt += 1
        guard error.code == .historyGone, attempt < 8 else { throw error }
        continue
      }
      // Asked under the pin, which keeps deletes behind it from now on. One that is gone already is
      // never delivered: without a reset the follower would keep its key for ever.
      let dropped = try engine.reader.bounds().droppedThrough
      guard dropped <= max(position, resetThrough) else {
        resetThrough = dropped
        position = 0
        releasePin()
        return true
      }
      cursor = LogCursor(engine.reader, from: position + 1, through: goal)
      return false
    }
  }

  private mutating func releasePin() {
    cursor = nil
    pin = nil
    sincePin = 0
  }

  /// The change for an entry; nil where the prefix leaves the key out, or the entry is gone.
  private func change(_ found: LogEntry) throws(TidemarkError) -> EntryChange? {
    let prefix = options.prefix
    guard prefix.bytes.isEmpty || Key(found.key).hasPrefix(prefix) else { return nil }
    do throws(TidemarkError) {
      let entry = try source.entry(found, values: options.values)
      return .entry(entry, at: try engine.reader.bounds().cursor(at: found.sequence))
    } catch {
      // Up to the pin, compaction may drop a superseded entry between the cursor and this read.
      // Only an entry that is still in the log is damaged.
      guard error.code == .damaged, try engine.reader.entryIfKept(at: found.sequence) == nil else {
        throw error
      }
      return nil
    }
  }
}
