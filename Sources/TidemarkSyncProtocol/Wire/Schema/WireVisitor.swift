internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Goes over the fields of a message in the order in which its `visit` describes them, and writes
/// them, or reads them into the message, or only looks at them: in a frame, or as JSON.
///
/// A message is described once, for both codings. A field has a name for JSON; in a frame it is
/// told by its place. What a description says about bounds holds for whoever writes or reads: what
/// does not keep to them makes the visit throw.
struct WireVisitor {
  /// Whether fields have names. An optional field that is absent keeps the value that it has.
  let isJSON: Bool
  /// Whether the fields of the message get their values from what is visited.
  let isReading: Bool
  /// Whether the message is put in the form in which it is sent: lists whose order has no meaning
  /// in byte order, and texts for people cut, since a peer that has too much to say must still get
  /// its answer through.
  let normalizes: Bool
  var frame = FrameCursor()
  private(set) var json = JSONWriter()
  private var object = JSONFields()

  /// Writes or reads a frame, or looks at a message.
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

  /// Visits a whole message. JSON names its kind.
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

  /// An offset, a sequence, the number of a batch.
  mutating func count(
    _ name: StaticString, _ value: inout UInt64, isOptional: Bool = false
  ) throws(FormatError) {
    try number(name, &value, in: 0...WireLimits.counts - 1, isOptional: isOptional)
  }

  mutating func position(
    _ name: StaticString, _ position: inout Position, isOptional: Bool = false
  ) throws(FormatError) {
    try value(name, &position, isOptional: isOptional)
    try position.check()
  }

  /// A position that a frame counts from the last one.
  mutating func nextPosition(
    _ name: StaticString, _ position: inout Position
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

  /// Text where it is UTF-8, else base64 in JSON.
  mutating func bytes(
    _ name: StaticString, _ bytes: inout [UInt8], atMost limit: Int
  ) throws(FormatError) {
    if !isReading { try WireBounds.check(bytes.count, in: 0...limit, name) }
    guard isJSON else { return try frame.bytes(&bytes, atMost: limit) }
    guard isReading else {
      // Shorter texts are never base64 because of their length.
      return json.content(name, bytes.rawSpan, shortText: 256)
    }
    bytes = try object.bytes(name)
    try WireBounds.check(bytes.count, in: 0...limit, name)
  }

  mutating func key(_ key: inout [UInt8]) throws(FormatError) {
    if isJSON { try bytes("key", &key, atMost: Limits.keyBytes) } else { try frame.key(&key) }
    try WireBounds.check(key: key)
  }

  /// A list of bytes. JSON need not have them in order.
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

  /// A list of bytes that are hexadecimal digits in JSON; one of nothing where it is absent.
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

  /// The time of an entry's writer: in JSON a text, or a pair where that cannot name it.
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

  /// The byte that the flags after it are in, in a frame.
  mutating func flags(_ known: UInt8) throws(FormatError) {
    if !isJSON { try frame.flags(known) }
  }

  /// One of these; in JSON a field that is there when it is true.
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

  /// Whether a field is there: the first flag of a frame. In JSON the field itself tells.
  /// - Parameter other: the name of a field that is there if and only if this one is not.
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

  /// Whether to visit a field that JSON leaves out when it holds nothing.
  func has(_ isThere: Bool) -> Bool { !isJSON || isReading || isThere }

  // MARK: Structure

  /// An optional field of a frame, and of JSON.
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

  /// An object in JSON.
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

  /// A list of objects in JSON. A frame has its count before it unless it must be one number.
  /// - Parameter size: the least bytes that one takes in a frame.
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
