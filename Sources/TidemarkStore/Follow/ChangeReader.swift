internal import TidemarkEngine

/// Reads changes from the log, up to where it reaches now.
package struct ChangeReader: Sendable {
  /// After this many entries the pin moves on, so that it never holds back much.
  private static let entriesPerPin = 4096

  private let source: ReadSource
  private let options: ChangeOptions
  /// The last sequence that was dealt with.
  package private(set) var position: UInt64
  /// How far the log is read before the next look at where it ends.
  private var goal: UInt64 = 0
  /// Keeps from compaction what comes behind the position, while there is something to read.
  private var pin: EngineView?
  private var cursor: LogCursor?
  private var sincePin = 0
  /// Deletes up to here were gone before the follower began anew, so it never saw their keys.
  private var voidThrough: UInt64 = 0
  /// The log as it was when the position was reached.
  private var known: LogBounds?

  package init(_ source: ReadSource, after position: UInt64, options: ChangeOptions) {
    self.source = source
    self.position = position
    self.options = options
  }

  private var engine: Engine { source.engine }

  /// The next change; nil when all has been told that there is.
  package mutating func next() throws(TidemarkError) -> Change? {
    try beginAnewAfterTakeover()
    while true {
      if let pin, sincePin >= Self.entriesPerPin {
        self.pin = try engine.reader.view(at: max(position, pin.sequence))
        sincePin = 0
      }
      if cursor == nil, try begin() { return .reset(at: .beginning) }
      guard cursor != nil else { return nil }
      guard let found = try cursor?.next() else {
        position = max(position, goal)
        letGo()
        continue
      }
      sincePin += 1
      position = found.sequence
      do throws(TidemarkError) {
        if let change = try change(found) { return change }
      } catch {
        // Once the store is resumed it is told after all.
        if error.code == .suspended {
          position = found.sequence - 1
          letGo()
        }
        throw error
      }
    }
  }

  /// While the store was suspended nothing was pinned: another process may have dropped what was
  /// yet to be told.
  private mutating func beginAnewAfterTakeover() throws(TidemarkError) {
    let bounds = try engine.reader.bounds()
    guard let before = known, bounds.opening != before.opening else {
      known = bounds
      return
    }
    letGo()
    let epoch = bounds.epoch(of: position)
    // The oldest epochs go from a list that is full.
    guard position <= bounds.visible, epoch == before.epoch(of: position) || epoch == 0 else {
      throw TidemarkError(
        .historyDiverged,
        "entries that were seen were lost while the store was suspended; read the state anew and "
          + "follow from there",
        sequences: position...position)
    }
    known = bounds
  }

  /// Pins what there is behind the position, and sets the cursor to it; leaves that nil where there
  /// is nothing.
  /// - Returns: whether the follower has to begin anew.
  private mutating func begin() throws(TidemarkError) -> Bool {
    var attempt = 0
    while true {
      let bounds = try engine.reader.bounds()
      known = bounds
      goal = options.delivery == .committed ? bounds.visible : bounds.durable
      guard position < goal else { return false }
      // The entry at `historyFrom` is kept, so are all behind it; before it, each key's last.
      do { pin = try engine.reader.view(at: max(position, min(bounds.historyFrom, goal))) } catch {
        attempt += 1
        guard error.code == .historyGone, attempt < 8 else { throw error }
        continue
      }
      // Looked at again under the pin: from now on no delete behind it can go.
      let dropped = try engine.reader.bounds().droppedThrough
      guard dropped <= max(position, voidThrough) else {
        voidThrough = dropped
        position = 0
        letGo()
        return true
      }
      cursor = LogCursor(engine.reader, from: position + 1, through: goal)
      return false
    }
  }

  private mutating func letGo() {
    cursor = nil
    pin = nil
    sincePin = 0
  }

  /// The change that an entry means; nil for what is not wanted or, superseded, just gone.
  private func change(_ found: LogEntry) throws(TidemarkError) -> Change? {
    let prefix = options.prefix
    guard prefix.bytes.isEmpty || Key(found.key).hasPrefix(prefix) else { return nil }
    do throws(TidemarkError) {
      let entry = try source.entry(found, values: options.values)
      return .entry(entry, at: try engine.reader.bounds().cursor(at: found.sequence))
    } catch {
      guard error.code == .damaged, try engine.reader.entryIfKept(at: found.sequence) == nil else {
        throw error
      }
      return nil
    }
  }
}
