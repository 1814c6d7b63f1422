/// The events of a ``SyncSimulation``, made from a seed: writes, network failures, crashes and
/// restores of some devices and a server.
///
/// Its ``description`` is text with one event a line, and ``init(parsing:)`` reads it back.
public struct SyncScript: Sendable, Hashable {
  /// The seed from which the script was made. The simulation also draws its own random numbers from
  /// it.
  public var seed: UInt64
  /// How many devices the simulation has at its beginning.
  public var devices: Int
  /// The most changes in a batch, or entries in a page.
  public var batch: Int
  /// About how many bytes a batch or page may have.
  public var batchBytes: Int
  /// The sum of the server's peculiarities: 1 has its feed in memory and not in a store, 2 makes
  /// half of its answers before it has synced, 4 has its feed in a database of SQL that others
  /// restore beneath it.
  public var server: Int
  /// The events, in the order in which they happen.
  public var events: [SyncEvent]

  /// Creates a script from given events.
  /// - Parameters:
  ///   - seed: the seed for the simulation's own random numbers.
  ///   - devices: how many devices there are at the beginning.
  ///   - batch: the most changes in a batch or page.
  ///   - batchBytes: about how many bytes a batch or page may have.
  ///   - server: the sum of the server's variants; see ``server``.
  ///   - events: the events, in order.
  public init(
    seed: UInt64, devices: Int = 3, batch: Int = 4000, batchBytes: Int = 256 << 10, server: Int = 0,
    events: [SyncEvent]
  ) {
    self.server = server & 7
    self.seed = seed
    self.devices = min(max(devices, 1), 8)
    self.batch = batch
    self.batchBytes = batchBytes
    self.events = events
  }

  /// Makes up a script from a seed.
  /// - Parameters:
  ///   - seed: decides every event.
  ///   - count: how many events the script has.
  ///   - profile: which events are frequent; by default the seed picks a profile.
  public init(seed: UInt64, events count: Int = 500, profile: SyncProfile? = nil) {
    var generator = SyncScriptGenerator(seed: seed, profile: profile)
    self = generator.script(count)
  }
}

extension SyncScript: CustomStringConvertible {
  /// The script as text with one event a line. Lines that begin with `#` are comments.
  public var description: String {
    "world \(seed) \(devices) \(batch) \(batchBytes)\(server > 0 ? " \(server)" : "")\n"
      + events.map { $0.description + "\n" }.joined()
  }

  /// Reads a script from its text.
  /// - Throws: ``SyncScriptError`` with the first invalid line.
  public init(parsing text: String) throws(SyncScriptError) {
    self.init(seed: 0, events: [])
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    where !line.isEmpty && !line.hasPrefix("#") {
      guard line.hasPrefix("world ") else {
        events.append(try SyncEvent(line, number: index + 1))
        continue
      }
      let numbers = line.split(separator: " ").dropFirst().compactMap { UInt64($0) }
      guard (4...5).contains(numbers.count),
        numbers[1...].allSatisfy({ (1...1_000_000).contains($0) })
      else {
        throw SyncScriptError(
          description: "line \(index + 1): expects seed, devices, changes and bytes of a batch, "
            + "and perhaps the kind of server")
      }
      self.init(
        seed: numbers[0], devices: Int(numbers[1]), batch: Int(numbers[2]),
        batchBytes: Int(numbers[3]), server: numbers.count > 4 ? Int(numbers[4]) : 0,
        events: events)
    }
  }

  /// The shortest script found that fails as well: events are left out, many at a time and then
  /// one by one, then writes of batches. (Zeller's and Hildebrandt's delta debugging.)
  /// - Parameters:
  ///   - attempts: how often `fails` is called at most.
  ///   - fails: runs a script and says whether it fails.
  public func shortest(attempts: Int, fails: (SyncScript) -> Bool) -> SyncScript {
    var best = self
    var left = attempts
    func take(_ events: [SyncEvent]) -> Bool {
      guard left > 0 else { return false }
      left -= 1
      var candidate = best
      candidate.events = events
      guard fails(candidate) else { return false }
      best = candidate
      return true
    }
    var hasChanged = true
    while hasChanged, left > 0 {
      hasChanged = false
      var size = max(1, best.events.count / 2)
      while true {
        // From the end, since what comes after the failure is never needed.
        var end = best.events.count
        while end > 0 {
          let start = max(0, end - size)
          var events = best.events
          events.removeSubrange(start..<end)
          if take(events) { hasChanged = true }
          end = min(start, best.events.count)
        }
        if size == 1 { break }
        size = max(1, size / 2)
      }
      for index in best.events.indices {
        for simpler in best.events[index].simpler {
          var events = best.events
          events[index] = simpler
          if take(events) {
            hasChanged = true
            break
          }
        }
      }
    }
    return best
  }
}

extension SyncEvent {
  /// Events that do less, the boldest first.
  fileprivate var simpler: [SyncEvent] {
    var result: [SyncEvent] = []
    func add(_ change: (inout SyncEvent) -> Void) {
      var event = self
      change(&event)
      if event != self { result.append(event) }
    }
    if writes.count > 1 { for index in writes.indices { add { $0.writes.remove(at: index) } } }
    for index in writes.indices where writes[index].size > 0 || writes[index].labels != "-" {
      add {
        $0.writes[index].size = 0
        $0.writes[index].labels = "-"
      }
    }
    switch kind {
    case .fuse, .powerCut: add { $0.kind = .kill }
    case .kill: add { $0.kind = .reopen }
    case .dropHistory: add { $0.kind = .compact }
    case .exchange, .fill:
      for index in numbers.indices where numbers[index] > 1 { add { $0.numbers[index] /= 2 } }
    default: break
    }
    return result
  }
}
