internal import Tidemark
internal import TidemarkEngine

/// The facts about the cache of a device: what it was given, and what its log has left of that.
struct CacheBook {
  /// How long a value is valid, as puts and touches have said.
  struct Term: Hashable {
    /// Milliseconds since 1970.
    var validated: Int64
    /// Milliseconds.
    var age: Int64
    var isMarked = false

    var end: Int64 { validated + (isMarked ? 0 : age) }

    /// A value is valid no longer than for its age, and never on a clock that was set back for
    /// longer than that.
    func isValid(at now: Int64) -> Bool {
      !isMarked && now < end && validated <= now + age
    }
  }

  /// A value that the cache was given.
  struct Value {
    var key: [UInt8]
    /// The length of key and value.
    var bytes: Int
    /// The terms that were given for it, in order. A crash may have taken the last ones.
    private(set) var terms: [Term]
    /// All from here on may be what the log has.
    private var first = 0
    /// Whether a user has touched the key since the last of the terms that hold, which renews the
    /// value by the log's time.
    private(set) var isRenewedByUser = false
    /// The same since the value was given.
    private var wasRenewedByUser = false

    init(_ key: [UInt8], bytes: Int, _ term: Term) {
      (self.key, self.bytes, terms) = (key, bytes, [term])
    }

    /// The terms that may hold.
    var possible: ArraySlice<Term> { terms[first...] }

    /// Adds what is said of it now, which need not become durable.
    mutating func add(_ more: [Term]) { terms += more }

    /// Makes the last terms the only ones.
    mutating func holds(last count: Int) {
      first = terms.count - count
      isRenewedByUser = false
    }

    /// A user touches the key.
    mutating func renewedByUser() { (isRenewedByUser, wasRenewedByUser) = (true, true) }

    /// A crash may have taken what was said last, and left what a user's touch had made of it.
    mutating func crashed() { (first, isRenewedByUser) = (0, wasRenewedByUser) }
  }

  /// All values that it was ever given.
  var values: [Content: Value] = [:]
  /// The values that are there, by key.
  var present: [[UInt8]: Content] = [:]

  /// A log is read from its beginning, of which a part may be lost.
  mutating func beginAnew() {
    present = [:]
    for content in values.keys { values[content]?.crashed() }
  }

  /// The value that a key has, with what was said of it.
  func value(_ key: [UInt8]) -> (content: Content, value: Value)? {
    guard let content = present[key], let value = values[content] else { return nil }
    return (content, value)
  }

  /// How many values there are, and how many bytes they have.
  var fill: (count: Int, bytes: Int) {
    (present.count, present.values.reduce(0) { $0 + (values[$1]?.bytes ?? 0) })
  }
}
