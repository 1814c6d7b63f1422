internal import TidemarkEngine
internal import TidemarkNDJSON

/// Carries what a program does not know over to what it writes: the fields of an object that its
/// type never asked for, at every level.
///
/// Elements of arrays belong together that have the same `id`; where elements have none, those in
/// the same place, if there are as many as before.
struct JSONCarry {
  private let old: JSONDecoding
  private let new: JSONTape
  private var output: [UInt8] = []

  /// Whether some name of the old text stands at no place of the new one that corresponds: only
  /// then may there be something to carry.
  static func mayHaveUnknown(_ old: JSONTape, _ new: JSONTape) -> Bool {
    lacks(old, 0, new, 0)
  }

  private static func lacks(_ old: JSONTape, _ a: Int, _ new: JSONTape, _ b: Int) -> Bool {
    switch (old[a].kind, new[b].kind) {
    case (.object, .object):
      return join(old, a, new, b).contains { name, other in
        guard let name else { return false }
        return other.map { lacks(old, name + 1, new, $0 + 1) } ?? true
      }
    case (.array, .array):
      // An element may have gone whose fields nobody knows: that is as it should be.
      let (before, after) = (old.elements(of: a), new.elements(of: b))
      return pairs(old, before, new, after).contains { lacks(old, $0.old, new, $0.new) }
    default: return false
    }
  }

  /// The new text with what the old one has besides.
  /// - Parameters:
  ///   - old: the old text, after it was decoded.
  ///   - new: the text that takes its place, with its names in order.
  static func carry(_ old: JSONDecoding, into new: JSONTape) -> [UInt8] {
    var carry = JSONCarry(old: old, new: new)
    carry.output.reserveCapacity(new.text.count + 64)
    carry.write(0, 0)
    return carry.output
  }

  private init(old: JSONDecoding, new: JSONTape) {
    self.old = old
    self.new = new
  }

  private mutating func write(_ before: Int?, _ index: Int) {
    guard let before else {
      output.append(contentsOf: new.bytes(of: new[index]))
      return
    }
    switch (old.tape[before].kind, new[index].kind) {
    case (.object, .object): writeObject(before, index)
    case (.array, .array): writeArray(before, index)
    default: output.append(contentsOf: new.bytes(of: new[index]))
    }
  }

  private mutating func writeObject(_ before: Int, _ index: Int) {
    output.append(UInt8(ascii: "{"))
    var last: Int?
    for (name, own) in Self.join(old.tape, before, new, index) {
      // A name that stood there twice is the one that was asked for.
      if own == nil, let name, let last,
        old.tape.characters(old.tape[name]) == old.tape.characters(old.tape[last])
      {
        continue
      }
      last = name ?? last
      if let own {
        separate()
        output.append(contentsOf: new.bytes(of: new[own]))
        output.append(UInt8(ascii: ":"))
        write(name.map { $0 + 1 }, own + 1)
      } else if let name, !old.asked[name] {
        writeOld(name)
      }
    }
    output.append(UInt8(ascii: "}"))
  }

  /// The names of two objects, in order, those that say the same beside each other.
  private static func join(
    _ old: JSONTape, _ a: Int, _ new: JSONTape, _ b: Int
  ) -> [(old: Int?, new: Int?)] {
    let (before, after) = (old.orderedMembers(of: a), new.orderedMembers(of: b))
    var pairs: [(old: Int?, new: Int?)] = []
    var (i, j) = (0, 0)
    while i < before.count || j < after.count {
      let isOld = i < before.count
      let isNew = j < after.count
      if isOld, !isNew || before[i].name.lexicographicallyPrecedes(after[j].name) {
        pairs.append((before[i].index, nil))
        i += 1
      } else if isNew, !isOld || after[j].name.lexicographicallyPrecedes(before[i].name) {
        pairs.append((nil, after[j].index))
        j += 1
      } else {
        pairs.append((before[i].index, after[j].index))
        i += 1
        j += 1
      }
    }
    return pairs
  }

  private mutating func writeOld(_ name: Int) {
    separate()
    output.append(contentsOf: old.tape.bytes(of: old.tape[name]))
    output.append(UInt8(ascii: ":"))
    output.append(contentsOf: old.tape.bytes(of: old.tape[name + 1]))
  }

  private mutating func separate() {
    if output.last != UInt8(ascii: "{"), output.last != UInt8(ascii: "[") {
      output.append(UInt8(ascii: ","))
    }
  }

  private mutating func writeArray(_ before: Int, _ index: Int) {
    let elements = new.elements(of: index)
    let pairs = Self.pairs(old.tape, old.tape.elements(of: before), new, elements)
    let partners = Dictionary(
      pairs.map { ($0.new, $0.old) }, uniquingKeysWith: { first, _ in first })
    output.append(UInt8(ascii: "["))
    for (position, element) in elements.enumerated() {
      if position > 0 { output.append(UInt8(ascii: ",")) }
      write(partners[element], element)
    }
    output.append(UInt8(ascii: "]"))
  }

  /// The elements of two arrays that belong together.
  private static func pairs(
    _ old: JSONTape, _ before: [Int], _ new: JSONTape, _ after: [Int]
  ) -> [(old: Int, new: Int)] {
    var places: [ArraySlice<UInt8>: Int] = [:]
    for element in before {
      if let id = old.id(of: element) { places[id] = element }
    }
    if places.isEmpty {
      return before.count == after.count ? Array(zip(before, after)).map { ($0, $1) } : []
    }
    return after.compactMap { element in
      new.id(of: element).flatMap { places[$0] }.map { ($0, element) }
    }
  }
}

extension JSONTape {
  /// The names of an object by their characters.
  fileprivate func orderedMembers(of object: Int) -> [(name: [UInt8], index: Int)] {
    let members = members(of: object).map { (name: characters(nodes[$0]), index: $0) }
    let isOrdered = zip(members, members.dropFirst())
      .allSatisfy { $0.name.lexicographicallyPrecedes($1.name) }
    return isOrdered ? members : members.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  fileprivate func elements(of array: Int) -> [Int] {
    var elements: [Int] = []
    var child = array + 1
    while child < nodes[array].next {
      elements.append(child)
      child = Int(nodes[child].next)
    }
    return elements
  }

  /// The text of an element's field `id`.
  fileprivate func id(of element: Int) -> ArraySlice<UInt8>? {
    guard nodes[element].kind == .object else { return nil }
    let name = members(of: element).first { string(nodes[$0], isEqualTo: "id".utf8) }
    return name.map { bytes(of: nodes[$0 + 1]) }
  }

  /// The UTF-8 bytes of a string.
  fileprivate func characters(_ node: Node) -> [UInt8] {
    let text = bytes(of: node)
    return text.contains(UInt8(ascii: "\\"))
      ? Self.unescaped(text) : Array(text.dropFirst().dropLast())
  }
}
