internal import TidemarkTestKit

/// The properties of a simulated REST back end.
struct RestTraits: OptionSet, Sendable, Hashable {
  var rawValue: UInt32

  /// It gives what is created ids of its own, and knows nothing of keys.
  static let givesIDs = RestTraits(rawValue: 1 << 0)
  /// It answers an idempotency key that it knows as before.
  static let keepsKeys = RestTraits(rawValue: 1 << 1)
  /// It does so with errors, too.
  static let keepsErrors = RestTraits(rawValue: 1 << 2)
  /// Its list has every version, and not the last of each record.
  static let listsVersions = RestTraits(rawValue: 1 << 3)
  /// Its list tells of deletes.
  static let listsDeletes = RestTraits(rawValue: 1 << 4)
  /// Its list gives the idempotency keys along.
  static let listsKeys = RestTraits(rawValue: 1 << 5)
  /// It compares versions where a request names one.
  static let comparesVersions = RestTraits(rawValue: 1 << 6)
  /// Its answer to a conflict has what it holds.
  static let tellsState = RestTraits(rawValue: 1 << 7)
  /// It refuses a child whose parent is not there.
  static let hasForeignKeys = RestTraits(rawValue: 1 << 8)
  /// One record can be asked for.
  static let canRead = RestTraits(rawValue: 1 << 9)
  /// It has carried out what it always answers with 500.
  static let failsLate = RestTraits(rawValue: 1 << 10)
}

/// One event of a ``RestScript``. Its numbers mean something in every state.
struct RestEvent: Sendable, Hashable, CustomStringConvertible {
  enum Kind: String, Sendable, CaseIterable {
    /// Puts a key that was never there; a key that other devices put, too.
    case create, share
    /// Puts or deletes one of the keys that are there, by number.
    case edit, delete
    /// Gives one of them one of two values that others give it, too.
    case toggle
    /// Puts a new key after the last put, which may have been refused.
    case child
    /// Puts two keys as one group; a value that is refused; one that is always answered with 500.
    case group, bad, poison
    /// Makes calls until there is nothing to do, or one fails; makes so many.
    case sync, calls
    /// Syncs, and in the n-th request: it is lost, its answer is lost, the process dies before it
    /// or after it.
    case loseRequest, loseAnswer, dieBefore, dieAfter
    case restart, powerCut, backUp, restore, copy
    /// A user signs out and another one in: what is unsent is given up, or all is sent before; the
    /// process may die meanwhile.
    case signOut
    /// A number of answers that come from a proxy on the way; that are 429; that are 503.
    case box, busy, outage
    /// The tokens given so far expire; the next lists say that there is more, and always the same.
    case expire, stuck
    /// Somebody at the back end creates, edits or deletes a record.
    case webCreate, webEdit, webDelete
    /// The clock goes on by minutes.
    case advance
  }

  var kind: Kind
  var device = 0
  var number = 0

  var description: String { "\(kind.rawValue) \(device) \(number)" }
}

/// The events of a ``RestSimulation``, made from a seed: writes, failures and restores of some
/// devices and a REST back end.
public struct RestScript: Sendable, Hashable, CustomStringConvertible {
  /// The seed from which the script was made. The simulation also draws its own random numbers from
  /// it.
  public var seed: UInt64
  var devices = 2
  /// Most changes of a page of the list, and of a batch.
  var page = 3
  var batch = 4
  /// The resolver of all devices, by number.
  var resolver = 0
  var traits: RestTraits = [.keepsKeys, .listsDeletes, .listsKeys]
  var events: [RestEvent] = []

  /// Makes up a script from a seed.
  /// - Parameters:
  ///   - seed: decides every event.
  ///   - count: how many events the script has.
  public init(seed: UInt64, events count: Int = 60) {
    self.seed = seed
    var generator = SeededGenerator(seed: seed &* 97 &+ 13)
    devices = generator.int(in: 2...4)
    page = generator.pick([1, 2, 3, 5, 50]) ?? 3
    batch = generator.pick([1, 2, 4, 64]) ?? 4
    resolver = generator.int(below: 3)
    traits = RestTraits(rawValue: UInt32(truncatingIfNeeded: generator.next()))
      .intersection(RestTraits(rawValue: (1 << 11) - 1))
    // Without idempotency keys changes are made twice, which creates two records.
    if generator.chance(0.7) || traits.contains(.givesIDs) { traits.insert(.keepsKeys) }
    while events.count < count {
      let kind = Self.kinds[generator.int(below: Self.kinds.count)]
      events.append(
        RestEvent(
          kind: kind, device: generator.int(below: 4), number: generator.int(below: 24)))
      // A write is often sent at once.
      if generator.chance(0.2) {
        events.append(RestEvent(kind: .sync, device: events[events.count - 1].device))
      }
    }
  }

  private static let weights: [RestEvent.Kind: Int] = [
    .create: 12, .share: 4, .edit: 14, .delete: 4, .toggle: 3, .child: 6, .group: 2, .bad: 2,
    .poison: 1, .sync: 22, .calls: 5, .loseRequest: 2, .loseAnswer: 4, .dieBefore: 2,
    .dieAfter: 4, .restart: 3, .powerCut: 2, .backUp: 4, .restore: 4, .copy: 2, .signOut: 2,
    .box: 4, .busy: 3,
    .outage: 2, .expire: 2, .stuck: 1, .webCreate: 2, .webEdit: 3, .webDelete: 2, .advance: 4,
  ]
  private static let kinds = RestEvent.Kind.allCases.flatMap {
    Array(repeating: $0, count: weights[$0] ?? 0)
  }

  /// The script as text with one event a line, which ``init(parsing:)`` reads back. Lines that
  /// begin with `#` are comments.
  public var description: String {
    "rest \(seed) \(devices) \(page) \(batch) \(resolver) \(traits.rawValue)\n"
      + events.map { "\($0)\n" }.joined()
  }

  /// Reads a script from its text.
  /// - Throws: ``SyncScriptError`` with the first invalid line.
  public init(parsing text: String) throws(SyncScriptError) {
    self.init(seed: 0, events: 0)
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split(separator: " ")
      let numbers = words.dropFirst().compactMap { UInt64($0) }
      if words[0] == "rest", numbers.count == 6, numbers[1...].allSatisfy({ $0 < 1 << 16 }) {
        seed = numbers[0]
        devices = min(max(Int(numbers[1]), 1), 8)
        page = max(Int(numbers[2]), 1)
        batch = max(Int(numbers[3]), 1)
        resolver = Int(numbers[4])
        traits = RestTraits(rawValue: UInt32(numbers[5]))
      } else if let kind = RestEvent.Kind(rawValue: String(words[0])), numbers.count == 2,
        numbers.allSatisfy({ $0 < 1 << 16 })
      {
        events.append(
          RestEvent(kind: kind, device: Int(numbers[0]), number: Int(numbers[1])))
      } else {
        throw SyncScriptError(description: "no such event: \(line)")
      }
    }
  }
}
