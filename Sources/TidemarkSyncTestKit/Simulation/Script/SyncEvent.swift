/// One event of a ``SyncScript``: something that a program, the network or fate does to a device
/// or to the server.
///
/// Its numbers mean something in every state, so that it can stand in a shorter script, too: the
/// seventh message under way is the one with that number modulo how many there are.
public struct SyncEvent: Sendable, Hashable {
  /// The kind of event.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A program writes; several writes are one batch.
    case write, durableWrite
    /// A program writes so many cold keys, from a number on.
    case fill
    /// A device sends its next call.
    case call
    /// A message arrives; is lost; arrives and stays under way, to arrive again.
    case deliver, drop, duplicate
    /// A device waits no longer for its answer.
    case giveUp
    /// So many calls and answers in fine weather.
    case exchange
    /// Nothing arrives from or at a device; all that was held back may arrive.
    case partition, heal
    /// The process ends; the power goes off, by a seed; the power goes off in a later call to
    /// the disk, by how many calls later and a seed. Device or server, which start again.
    case kill, powerCut, fuse
    /// Closed and opened again.
    case reopen
    /// A copy is made; put in the store's place, by its number among the copies.
    case backUp, restore
    /// A device on a copy of another's store; an empty store in the place of the server's.
    case clone, anew
    /// Time passes for all, in seconds; a clock is set, by seconds.
    case advance, jump
    /// The policy of conflicts: which keys, which policy.
    case policy
    /// Which changes the server refuses.
    case validator
    /// The scope of a device; how it resolves conflicts; which way it syncs. All by number.
    case scope, resolver, direction
    /// The reach of a device's authorization, by number.
    case reach
    /// Segments are rewritten; the same without history; an index image is written.
    case compact, dropHistory, image
    /// A device keeps in its cache what another server has said: key, number of the value, its
    /// length, its age in seconds and one; 0 for the policy's. Writes are in the same batch.
    case cachePut
    /// A key of a cache is read; touched, with an age as above; marked; given up.
    case cacheRead, cacheTouch, cacheStale, cacheRemove
    /// All is given up that has been stale for so many seconds.
    case cacheExpire
  }

  /// The kind of event.
  public var kind: Kind
  /// To which device; nil for the server, or for the network.
  public var device: Int?
  /// As the kind has it.
  public var numbers: [UInt64]
  /// The writes of a write event.
  public var writes: [SyncWrite]

  /// Creates an event.
  public init(
    _ kind: Kind, device: Int? = nil, _ numbers: [UInt64] = [], writes: [SyncWrite] = []
  ) {
    self.kind = kind
    self.device = device
    self.numbers = numbers
    self.writes = writes
  }

  /// Instead of the number of a copy or message: the last of those there are.
  static let last: UInt64 = 1_000_000

  /// Which of so many things it is about.
  func index(below count: Int) -> Int {
    number(0) == Int(Self.last) ? count - 1 : number(0) % count
  }

  /// One of its numbers; 0 where the text had fewer.
  func number(_ index: Int) -> Int {
    index < numbers.count ? Int(truncatingIfNeeded: numbers[index] & 0x7fff_ffff) : 0
  }
}

/// A program's write to a key.
public struct SyncWrite: Sendable, Hashable {
  /// The kind of write.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Gives the key a value of so many bytes that nobody else gives any key.
    case put
    /// Changes one field of the JSON object that stands there.
    case edit
    /// Gives the key a value that the server refuses at times.
    case bad
    /// Gives the key a value that others give it, too.
    case same
    /// Gives the key a value and an attachment, both of which nobody else gives any key.
    case attach
    case delete, touch
  }

  /// The kind of write.
  public var kind: Kind
  /// The key.
  public var key: String
  /// The number that tells its value from all others.
  public var number: UInt64
  /// The least length of its value.
  public var size: Int
  /// A letter for each label; `-` for none.
  public var labels: String

  /// Creates a write.
  public init(_ kind: Kind, _ key: String, number: UInt64 = 0, size: Int = 0, labels: String = "-")
  {
    self.kind = kind
    self.key = key
    self.number = number
    self.size = size
    self.labels = labels
  }
}

// MARK: - Text

/// A line of a script that makes no sense.
public struct SyncScriptError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Which line, counted from 1, and what is wrong with it.
  public var description: String
}

extension SyncEvent: CustomStringConvertible {
  /// The event in one line.
  public var description: String {
    var words = [kind.rawValue]
    if let device { words.append("d\(device)") }
    words += numbers.map { String($0) }
    if !writes.isEmpty { words.append(": " + writes.map(\.description).joined(separator: " ; ")) }
    return words.joined(separator: " ")
  }

  init(_ line: Substring, number: Int) throws(SyncScriptError) {
    let halves = line.split(separator: ":", maxSplits: 1)
    var words = halves[0].split(separator: " ")[...]
    guard let kind = words.popFirst().flatMap({ Kind(rawValue: String($0)) }) else {
      throw SyncScriptError(description: "line \(number): no such event")
    }
    self.init(kind)
    if let word = words.first, word.hasPrefix("d") {
      device = Int(word.dropFirst())
      words.removeFirst()
    }
    for word in words {
      guard let value = UInt64(word) else {
        throw SyncScriptError(description: "line \(number): \(word) is no number")
      }
      numbers.append(value)
    }
    guard halves.count == 2 else { return }
    for text in halves[1].split(separator: ";") {
      guard let write = SyncWrite(text) else {
        throw SyncScriptError(description: "line \(number): \(text) is no write")
      }
      writes.append(write)
    }
  }
}

extension SyncWrite: CustomStringConvertible {
  /// The write as a script's text has it.
  public var description: String {
    kind == .delete || kind == .touch
      ? "\(kind.rawValue) \(key)" : "\(kind.rawValue) \(key) \(number) \(size) \(labels)"
  }

  init?(_ text: Substring) {
    let words = text.split(separator: " ")
    guard words.count == 2 || words.count == 5, let kind = Kind(rawValue: String(words[0])) else {
      return nil
    }
    self.init(kind, String(words[1]))
    guard words.count == 5 else { return }
    guard let number = UInt64(words[2]), let size = Int(words[3]), (0...1_000_000).contains(size)
    else { return nil }
    self.number = number
    self.size = size
    labels = String(words[4])
  }
}
