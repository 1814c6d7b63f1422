internal import TidemarkEngine
internal import TidemarkNDJSON

/// Carries what a program does not know over to what it writes: the fields of an object that its
/// type never asked for, at every level.
///
/// Such fields stay with what they came with, or go. An element of an array, a set or a dictionary
/// is known again by its `id`; else by all that the program knows of it, if exactly one element has
/// that before and after; else, in a dictionary, by its key. What a property holds is known by the
/// property, unless it has another `id` or has become what another property held. An array that the
/// program has not changed stays as it is.
struct JSONCarry {
  private let old: JSONDecoding
  private let new: JSONTape
  private var output: [UInt8] = []
  /// The old value that a new one goes on, by the new one.
  private var partners = [0: 0]

  /// Whether the new text lacks names of the old one: only then may there be something to carry.
  static func mayHaveUnknown(
    _ old: JSONTape, at a: Int = 0, _ new: JSONTape, at b: Int = 0
  ) -> Bool {
    switch (old[a].kind, new[b].kind) {
    case (.object, .object):
      return join(old, a, new, b).contains { name, other in
        guard let name else { return false }
        return other.map { mayHaveUnknown(old, at: name + 1, new, at: $0 + 1) } ?? true
      }
    case (.array, .array):
      // Where an element stands is of no matter here: all of an array have the same names.
      let (before, after) = (old.elements(of: a), new.elements(of: b))
      return before.count == after.count
        ? zip(before, after).contains { mayHaveUnknown(old, at: $0, new, at: $1) }
        : before.contains { old[$0].isContainer }
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
    carry.write(0)
    return carry.output
  }

  private mutating func write(_ index: Int) {
    let before = partners[index]
    switch (before.map { old.tape[$0].kind }, new[index].kind) {
    case (.object, .object): writeObject(before ?? 0, index)
    case (_, .array): writeArray(before, index)
    default: output.append(contentsOf: new.bytes(of: new[index]))
    }
  }

  private mutating func writeObject(_ before: Int, _ index: Int) {
    pairMembers(before, index)
    output.append(UInt8(ascii: "{"))
    var last: Int?
    for (name, own) in Self.join(old.tape, before, new, index) {
      // A name that stood there twice is the one that was asked for.
      if own == nil, let name, let last,
        old.tape.characters(of: name) == old.tape.characters(of: last)
      {
        continue
      }
      last = name ?? last
      if let own {
        separate()
        output.append(contentsOf: new.bytes(of: new[own]))
        output.append(UInt8(ascii: ":"))
        write(own + 1)
      } else if let name, !old.asked[name] {
        separate()
        output.append(contentsOf: old.tape.bytes(of: old.tape[name]))
        output.append(UInt8(ascii: ":"))
        output.append(contentsOf: old.tape.bytes(of: old.tape[name + 1]))
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

  private mutating func separate() {
    if output.last != UInt8(ascii: "{"), output.last != UInt8(ascii: "[") {
      output.append(UInt8(ascii: ","))
    }
  }

  private mutating func writeArray(_ before: Int?, _ index: Int) {
    if let before, old.tape[before].kind == .array {
      if let known = old.known(at: before), new.bytes(of: new[index]).elementsEqual(known) {
        output.append(contentsOf: old.tape.bytes(of: old.tape[before]))
        return
      }
      pairElements(
        old.tape.elements(of: before), new.elements(of: index),
        isDictionary: old.isDictionary(at: before))
    }
    output.append(UInt8(ascii: "["))
    for (position, element) in new.elements(of: index).enumerated() {
      if position > 0 { output.append(UInt8(ascii: ",")) }
      // Without a partner it may still have elements that have one.
      write(element)
    }
    output.append(UInt8(ascii: "]"))
  }

  // MARK: Partners

  /// A value within another one, with what it is known by.
  private struct Part {
    var node: Int
    var name: [UInt8]?
    var id: [UInt8]?
    var known: [UInt8]?
    var isObject: Bool
  }

  private func oldPart(_ node: Int, name: [UInt8]? = nil) -> Part {
    var part = Part(node: node, name: name, isObject: old.tape[node].kind == .object)
    part.known = old.known(at: node)
    if let known = part.known {
      // An id is compared as this program writes it.
      part.id = (try? JSONTape(known)).flatMap { $0.id(of: 0).map { Array($0.text) } }
    } else if let id = old.tape.id(of: node), old.asked[id.name] {
      part.id = Array(id.text)
    }
    return part
  }

  private func newPart(_ node: Int, name: [UInt8]? = nil) -> Part {
    Part(
      node: node, name: name, id: new.id(of: node).map { Array($0.text) },
      known: Array(new.bytes(of: new[node])), isObject: new[node].kind == .object)
  }

  private mutating func pairMembers(_ before: Int, _ index: Int) {
    let olds = old.tape.orderedMembers(of: before).filter { old.tape[$0.index + 1].isContainer }
    let news = new.orderedMembers(of: index).filter { new[$0.index + 1].isContainer }
    guard !olds.isEmpty, !news.isEmpty else { return }
    pair(
      olds.map { oldPart($0.index + 1, name: $0.name) },
      news.map { newPart($0.index + 1, name: $0.name) },
      byNameOnly: !old.isDictionary(at: before))
  }

  private mutating func pairElements(_ before: [Int], _ after: [Int], isDictionary: Bool) {
    guard isDictionary, before.count.isMultiple(of: 2), after.count.isMultiple(of: 2) else {
      return pair(
        before.filter { old.tape[$0].isContainer }.map { oldPart($0) },
        after.filter { new[$0].isContainer }.map { newPart($0) })
    }
    // A dictionary whose keys are no texts: keys and values by turns.
    let oldKeys = stride(from: 0, to: before.count, by: 2).map { oldPart(before[$0]) }
    let newKeys = stride(from: 0, to: after.count, by: 2).map { newPart(after[$0]) }
    pair(oldKeys, newKeys)
    pair(
      oldKeys.enumerated().map { oldPart(before[2 * $0 + 1], name: $1.known) },
      newKeys.enumerated().map { newPart(after[2 * $0 + 1], name: $1.known) })
  }

  private mutating func pair(_ olds: [Part], _ news: [Part], byNameOnly: Bool = false) {
    let known = Set(olds.compactMap(\.known))
    var (olds, news) = (olds, news)
    if PlantedBug.isOn(.unknownFieldsByPlace) {
      for (old, new) in zip(olds, news) { partners[new.node] = old.node }
      return
    }
    if !byNameOnly {
      join(&olds, &news, by: \.id)
      join(&olds, &news, by: \.known)
    }
    join(&olds, &news, by: \.name) { old, new in
      guard new.isObject else { return true }
      let isAnother = new.known != old.known && new.known.map(known.contains) == true
      return old.id == new.id && !isAnother
    }
    let (before, after) = (olds.filter { !$0.isObject }, news.filter { !$0.isObject })
    guard !byNameOnly, !before.isEmpty, !after.isEmpty else { return }
    // Arrays that have changed may still have elements of before.
    pairElements(
      before.flatMap { old.tape.elements(of: $0.node) },
      after.flatMap { new.elements(of: $0.node) }, isDictionary: false)
  }

  /// Pairs what is left where one value each has a fact.
  private mutating func join(
    _ olds: inout [Part], _ news: inout [Part], by fact: (Part) -> [UInt8]?,
    if holds: (Part, Part) -> Bool = { _, _ in true }
  ) {
    let before = Self.unique(olds, by: fact)
    var taken: Set<Int> = []
    for (value, new) in Self.unique(news, by: fact) {
      guard let old = before[value], old.isObject == new.isObject, holds(old, new) else { continue }
      partners[new.node] = old.node
      taken.insert(old.node)
    }
    olds.removeAll { taken.contains($0.node) }
    news.removeAll { partners[$0.node] != nil }
  }

  private static func unique(_ parts: [Part], by fact: (Part) -> [UInt8]?) -> [[UInt8]: Part] {
    let groups = Dictionary(grouping: parts.filter { fact($0) != nil }) { fact($0) ?? [] }
    return groups.compactMapValues { $0.count == 1 ? $0[0] : nil }
  }
}

extension JSONTape {
  /// The names of an object by their characters.
  fileprivate func orderedMembers(of object: Int) -> [(name: [UInt8], index: Int)] {
    let members = members(of: object).map { (name: characters(of: $0), index: $0) }
    let isOrdered = zip(members, members.dropFirst())
      .allSatisfy { $0.name.lexicographicallyPrecedes($1.name) }
    return isOrdered ? members : members.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The node and the value's text of an object's field `id`.
  fileprivate func id(of object: Int) -> (name: Int, text: ArraySlice<UInt8>)? {
    guard nodes[object].kind == .object else { return nil }
    let name = "id".withBytes { self.name($0, from: object + 1, upTo: Int(nodes[object].next)) }
    guard let name, nodes[name + 1].kind != .null else { return nil }
    return (name, bytes(of: nodes[name + 1]))
  }
}
