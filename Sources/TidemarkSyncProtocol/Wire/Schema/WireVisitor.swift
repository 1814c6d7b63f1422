internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Visits the fields of a message in the order in which its `visit` lists them: writes them, reads
/// them into the message, or only checks them; in a frame, or as JSON.
///
/// So each message is described once for both codings. A field has a name in JSON, and its place in
/// a frame. Bounds hold for reading and writing alike: a value outside of them makes the visit
/// throw.
struct WireVisitor {
  /// Whether the coding is JSON. There an absent optional field leaves the message's value.
  let isJSON: Bool
  /// Whether values are read into the message; otherwise they are written, or only checked.
  let isReading: Bool
  /// Whether the message is brought into the form in which it is sent: lists whose order has no
  /// meaning in byte order, and texts for people cut, as a text that is too long must not prevent
  /// an answer.
  let normalizes: Bool
  var frame = FrameCursor()
  private(set) var json = JSONWriter()
  private var object = JSONFields()

  /// Writes or reads a frame, or checks a message.
  init(_ frame: FrameCursor, normalizes: Bool = true) {
    (isJSON, isReading, self.normalizes) = (false, frame.isReading, normalizes && !frame.isReading)
    self.frame = frame
  }

  /// Writes JSON.
  init(writingJSON capacity: Int) {
    (isJSON, isReading, normalizes) = (true, false, true)
    json = JSONWriter(capacity: capacity)
  }

  /// Reads JSON.
  init(readingJSON text: [UInt8]) throws(FormatError) {
    (isJSON, isReading, normalizes) = (true, true, false)
    object = try JSONFields(text)
  }

  /// Visits a whole message. In JSON its kind is a field; in a frame it is in the header.
  mutating func visit(_ message: inout WireMessage) throws(FormatError) {
    guard isJSON else {
      let list = try frame.beginFields(atLeast: 0)
      try message.visit(&self)
      try frame.endFields(list)
      return try frame.finish()
    }
    if !isReading { json.beginObject() }
    var kind = message.kind
    try value("type", &kind)
    if isReading {
      object.isRequest = kind.isRequest
      message = WireMessage(blank: kind)
    }
    try message.visit(&self)
    if isReading { try object.finish() } else { json.endObject() }
  }

  // MARK: Values

  mutating func value<T: WireValue>(
    _ name: StaticString, _ value: inout T, isOptional: Bool = false
  ) throws(FormatError) {
    guard isJSON else { return try value.code(&frame) }
    guard isReading else {
      json.name(name)
      return json.plain { value.appendText(to: &$0) }
    }
    guard let node = try object.take(name, isOptional: isOptional) else { return }
    guard let read = T(wireText: try object.characters(node, name)) else {
      throw FormatError("\(name) is not in the form that it should have")
    }
    value = read
  }

  mutating func number<T: FixedWidthInteger>(
    _ name: StaticString, _ value: inout T, in range: ClosedRange<T>, isOptional: Bool = false
  ) throws(FormatError) {
    if !isReading { try WireBounds.check(value, in: range, name) }
    var number = UInt64(truncatingIfNeeded: value)
    let limit = UInt64(truncatingIfNeeded: range.upperBound)
    if !isJSON {
      try frame.varint(&number)
      guard number <= limit else { throw FormatError("number out of bounds") }
    } else if isReading {
      guard let node = try object.take(name, isOptional: isOptional) else { return }
      number = try object.number(node, name, atMost: limit)
    } else {
      json.name(name)
      json.number(number)
    }
    guard isReading else { return }
    value = T(truncatingIfNeeded: number)
    try WireBounds.check(value, in: range, name)
  }

  /// An offset, a sequence, or the number of a batch.
  mutating func count(
    _ name: StaticString, _ value: inout UInt64, isOptional: Bool = false
  ) throws(FormatError) {
    try number(name, &value, in: 0...WireLimits.counts - 1, isOptional: isOptional)
  }

  mutating func position(
    _ name: StaticString, _ position: inout FeedPosition, isOptional: Bool = false
  ) throws(FormatError) {
    try value(name, &position, isOptional: isOptional)
    try position.check()
  }

  /// A position that a frame codes as the difference from the last one.
  mutating func nextPosition(
    _ name: StaticString, _ position: inout FeedPosition
  ) throws(FormatError) {
    guard !isJSON else { return try self.position(name, &position) }
    try frame.flags(1)
    var isOther = position.epoch != frame.last.epoch
    frame.flag(1, &isOther)
    try frame.epoch(&position.epoch, isOther: isOther, than: frame.last.epoch)
    try frame.difference(&position.offset, from: frame.last.offset)
    frame.last = position
    try position.check()
  }

  mutating func text(
    _ name: StaticString, _ text: inout String, atMost limit: Int, isOptional: Bool = false
  ) throws(FormatError) {
    if normalizes { text.cut(to: limit) }
    if !isJSON {
      try frame.text(&text, atMost: limit)
    } else if isReading {
      guard let node = try object.take(name, isOptional: isOptional) else { return }
      text = String(decoding: try object.characters(node, name), as: UTF8.self)
    } else {
      json.name(name)
      json.text(text)
    }
    guard text.utf8.count <= limit else { throw FormatError("text too long") }
  }

  /// Bytes: in JSON a text where they are UTF-8, and base64 where not, or where that is shorter.
  mutating func bytes(
    _ name: StaticString, _ bytes: inout [UInt8], atMost limit: Int
  ) throws(FormatError) {
    if !isReading { try WireBounds.check(bytes.count, in: 0...limit, name) }
    guard isJSON else { return try frame.bytes(&bytes, atMost: limit) }
    guard isReading else {
      // A text of up to 256 bytes stays readable even where base64 were shorter.
      return json.content(name, bytes.rawSpan, shortText: 256)
    }
    bytes = try object.bytes(name)
    try WireBounds.check(bytes.count, in: 0...limit, name)
  }

  mutating func key(_ key: inout [UInt8]) throws(FormatError) {
    if isJSON { try bytes("key", &key, atMost: Limits.keyBytes) } else { try frame.key(&key) }
    try WireBounds.check(key: key)
  }

  /// A list of byte strings. Those in JSON may be in any order.
  /// - Parameter size: the least bytes that one takes in a frame.
  mutating func contents<T: WireBytes>(
    _ name: StaticString, _ contents: inout [T], atMost count: Int, each size: Int
  ) throws(FormatError) {
    if !isJSON {
      try frame.contents(&contents, atMost: count, each: size)
    } else if isReading {
      contents = try object.contents(name, atMost: count).map { T($0) }
    } else {
      json.contents(name, contents.map(\.wireBytes))
    }
  }

  /// The paths of a digest, hexadecimal in JSON; only the empty path where the field is absent.
  mutating func paths(_ name: StaticString, _ paths: inout [[UInt8]]) throws(FormatError) {
    if !isJSON {
      if isReading { paths = [] }
      return try frame.contents(&paths, atMost: WireLimits.digestPaths, each: 1)
    }
    guard isReading else {
      json.name(name)
      json.beginArray()
      for path in paths { json.plain { $0.append(contentsOf: path.hexDigits) } }
      return json.endArray()
    }
    guard let value = try object.take(name) else { return }
    let read = try object.elements(value, name, atMost: WireLimits.digestPaths).map {
      (element) throws(FormatError) in
      guard let path = [UInt8](hexDigits: try object.characters(element, name)) else {
        throw FormatError("a path is not hexadecimal")
      }
      return path
    }
    if !read.isEmpty { paths = read }
  }

  /// The time that a program gave an entry: in JSON a text, or numbers where no text is exact.
  mutating func time(_ time: inout Timestamp?) throws(FormatError) {
    guard !isReading else { return time = try object.time() }
    guard let time else { return }
    var text: [UInt8] = []
    time.appendRFC3339(to: &text)
    if Timestamp(rfc3339: text.rawSpan) == time {
      json.name("time")
      json.plain { $0.append(contentsOf: text) }
    } else {
      json.name("time_unix")
      json.beginArray()
      json.number(time.seconds)
      json.number(UInt64(time.nanoseconds))
      json.endArray()
    }
  }

  // MARK: Flags

  /// In a frame, the byte with the flags of the calls that follow.
  mutating func flags(_ known: UInt8) throws(FormatError) {
    if !isJSON { try frame.flags(known) }
  }

  /// One of these flags; in JSON a field, which is omitted if false.
  mutating func flag(
    _ name: StaticString, _ bit: UInt8, _ flag: inout Bool
  ) throws(FormatError) {
    if !isJSON {
      frame.flag(bit, &flag)
    } else if isReading {
      flag = try object.flag(name)
    } else if flag {
      json.name(name)
      json.word("true")
    }
  }

  /// Whether a field is present: in a frame the flag 1, in JSON the field itself.
  /// - Parameter other: the name of a field that is present if and only if this one is not.
  mutating func presence(
    of name: StaticString, or other: StaticString? = nil, _ isThere: inout Bool
  ) throws(FormatError) {
    guard isJSON else { return frame.flag(1, &isThere) }
    guard isReading else { return }
    isThere = try object.has(name)
    if let other, try object.has(other) == isThere {
      throw FormatError("either \(other) or \(name)")
    }
  }

  /// Whether to visit a field that written JSON omits if it is empty.
  func has(_ isThere: Bool) -> Bool { !isJSON || isReading || isThere }

  // MARK: Structure

  /// An optional field, with its number in a frame and its name in JSON.
  mutating func field<T>(
    _ number: UInt64, _ name: StaticString, _ value: inout T?, _ blank: T,
    _ body: (inout T, inout WireVisitor) throws(FormatError) -> Void
  ) throws(FormatError) {
    if isReading, try isJSON ? !object.has(name) : !frame.has(number) { return }
    guard var content = isReading ? blank : value else { return }
    if isJSON {
      try body(&content, &self)
    } else {
      let outer = frame.beginField(number)
      try body(&content, &self)
      try frame.endField(number, outer)
    }
    value = content
  }

  /// A part of the message, which is an object in JSON.
  mutating func part<T: WirePart>(
    _ name: StaticString, _ part: inout T, isOptional: Bool = false
  ) throws(FormatError) {
    guard isJSON else { return try part.visit(&self) }
    guard isReading else {
      json.name(name)
      json.beginObject()
      try part.visit(&self)
      return json.endObject()
    }
    guard let node = try object.take(name, isOptional: isOptional) else { return }
    let outer = try object.enter(node)
    try part.visit(&self)
    try object.leave(to: outer)
  }

  /// A list of parts, which are objects in JSON. A frame has the count first, unless it is fixed.
  /// - Parameter size: the least bytes of one part in a frame.
  mutating func list<T>(
    _ name: StaticString, _ rows: inout [T], _ blank: T, count range: ClosedRange<Int>,
    each size: Int, _ body: (inout T, inout WireVisitor) throws(FormatError) -> Void
  ) throws(FormatError) {
    var count = isReading ? range.lowerBound : rows.count
    var elements: [Int] = []
    if isJSON, isReading {
      guard let node = try object.take(name, isOptional: false) else { return }
      elements = try object.elements(node, name, atMost: range.upperBound)
      count = elements.count
    } else if isJSON {
      json.name(name)
      json.beginArray()
    } else if range.lowerBound < range.upperBound {
      try frame.count(&count, atMost: range.upperBound, each: size)
    }
    try WireBounds.check(count, in: range, name)
    guard count <= frame.remaining / size || isJSON else { throw FormatError("ends too early") }
    if isReading { rows.reserveCapacity(count) }
    for index in 0..<count {
      var row = isReading ? blank : rows[index]
      if isJSON, isReading {
        let outer = try object.enter(elements[index])
        try body(&row, &self)
        try object.leave(to: outer)
      } else {
        if isJSON { json.beginObject() }
        try body(&row, &self)
        if isJSON { json.endObject() }
      }
      if isReading { rows.append(row) }
    }
    if isJSON, !isReading { json.endArray() }
  }
}
