/// One event of a ``SyncScript``: something that a program, the network or fate does to a device
/// or to the server.
///
/// Its numbers mean something in every state, so that it can stand in a shorter script, too: the
/// seventh message under way is the one with that number modulo how many there are.
public struct SyncEvent: Sendable, Hashable {
  /// What a ``SyncEvent`` does. The event's numbers are the arguments in the order given here.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A program writes to its store, without or with waiting for durability. Several writes are
    /// one batch.
    case write, durableWrite
    /// A program writes many rarely used keys: how many, and from which number on.
    case fill
    /// A device sends the next call of its replicator.
    case call
    /// With `deliver` a message in transit arrives; with `drop` it is lost; with `duplicate` it
    /// arrives and stays in transit, to arrive again.
    case deliver, drop, duplicate
    /// A device stops waiting for the answer to its call.
    case giveUp
    /// A number of calls and answers pass without disturbance.
    case exchange
    /// With `partition` no message reaches or leaves a device; with `heal` all held back messages
    /// may arrive.
    case partition, heal
    /// A device or the server stops and starts again: `kill` ends the process; `powerCut` cuts the
    /// power, with a seed; `fuse` cuts the power in a later disk call, with a number of calls and a
    /// seed.
    case kill, powerCut, fuse
    /// A device or the server closes its store and opens it again.
    case reopen
    /// With `backUp` a store is copied; with `restore` a copy, by its number, takes the store's
    /// place.
    case backUp, restore
    /// With `clone` a device starts on a copy of another device's store; with `anew` the server
    /// starts with an empty store.
    case clone, anew
    /// With `advance` time passes for all, in seconds; with `jump` one clock is set forward or
    /// back, by seconds.
    case advance, jump
    /// The server gets another conflict policy: for which keys, and which policy.
    case policy
    /// The server gets other rules for the changes that it rejects, by number.
    case validator
    /// A device gets another scope, conflict resolver or sync direction, each by number.
    case scope, resolver, direction
    /// A device's authorization reaches other entries, by number.
    case reach
    /// A store rewrites segments (`compact`), rewrites them without history (`dropHistory`), or
    /// writes a sorted run (`run`).
    case compact, dropHistory, run
    /// A device stores a cached value: the key, the number of the value, its length, and its age in
    /// seconds plus one, or 0 for the age of the cache's policy. The event's writes are in the same
    /// batch.
    case cachePut
    /// A device reads a key of its cache, touches it with an age as for `cachePut`, marks it as
    /// stale, or removes it.
    case cacheRead, cacheTouch, cacheStale, cacheRemove
    /// A device removes all cached values that have been stale for a number of seconds.
    case cacheExpire
  }

  /// The kind of the event, such as a write, a lost message or a crash.
  public var kind: Kind
  /// The index of the device to which the event happens; nil for the server or the network.
  public var device: Int?
  /// The arguments of the event; ``Kind`` says what they mean.
  public var numbers: [UInt64]
  /// The writes of a write event; empty for other kinds.
  public var writes: [SyncWrite]

  /// Creates an event of a script.
  /// - Parameters:
  ///   - kind: what happens.
  ///   - device: the index of the device; nil for the server or the network.
  ///   - numbers: the arguments of the kind.
  ///   - writes: the writes of a write event.
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

/// A write of a simulated program to one key, as part of a ``SyncEvent``.
public struct SyncWrite: Sendable, Hashable {
  /// The sort of content that a simulated program writes to a key.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Gives the key a value that no other write gives to any key.
    case put
    /// Changes one field of the JSON object that is the key's value.
    case edit
    /// Gives the key a value that the server's validator may reject.
    case bad
    /// Gives the key a value that other devices give it too.
    case same
    /// Gives the key a value and an attachment that no other write gives to any key.
    case attach
    /// Deletes the key (`delete`), or confirms its value without a change (`touch`).
    case delete, touch
  }

  /// The sort of content that the program writes to the key.
  public var kind: Kind
  /// The key that the program writes.
  public var key: String
  /// The number that makes the written value different from all others.
  public var number: UInt64
  /// The least length of the written value in bytes.
  public var size: Int
  /// The labels of the entry, one letter each; `-` for none.
  public var labels: String

  /// Creates a write of a script.
  /// - Parameters:
  ///   - kind: what is written.
  ///   - key: the key.
  ///   - number: makes the value different from all others.
  ///   - size: the least length of the value in bytes.
  ///   - labels: one letter for each label; `-` for none.
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

/// A line of a script's text that cannot be read.
public struct SyncScriptError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The number of the line, counted from 1, and what is wrong with it.
  public var description: String
}

extension SyncEvent: CustomStringConvertible {
  /// The event as one line of a script's text.
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
  /// The write as it stands in a script's text.
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
