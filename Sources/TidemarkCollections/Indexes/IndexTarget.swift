/// The part of an index that a condition or an order is about.
enum IndexTarget: Sendable, Hashable {
  enum Form: UInt8, Sendable { case value, folded, each }

  /// A property, and how the terms of an object of its type are made.
  case path(any AnyKeyPath & Sendable, Form, terms: @Sendable (Any) -> [[UInt8]])
  case index(String)

  static func value<Object, Value: IndexValue>(
    _ path: any KeyPath<Object, Value> & Sendable
  ) -> IndexTarget {
    .path(path, .value) { ($0 as? Object).map { [$0[keyPath: path].indexTerm.bytes] } ?? [] }
  }

  static func folded<Object>(_ path: any KeyPath<Object, String> & Sendable) -> IndexTarget {
    .path(path, .folded) { object in
      guard let text = (object as? Object)?[keyPath: path] else { return [] }
      return [IndexTerm.folded(FoldedText(text), of: text).bytes]
    }
  }

  static func each<Object, Values: Swift.Collection & Sendable>(
    _ path: any KeyPath<Object, Values> & Sendable
  ) -> IndexTarget where Values.Element: IndexValue {
    .path(path, .each) { ($0 as? Object)?[keyPath: path].map(\.indexTerm.bytes) ?? [] }
  }

  static func == (a: IndexTarget, b: IndexTarget) -> Bool {
    switch (a, b) {
    case (.path(let a, let aForm, _), .path(let b, let bForm, _)):
      a as AnyKeyPath == b as AnyKeyPath && aForm == bForm
    case (.index(let a), .index(let b)): a == b
    default: false
    }
  }

  func hash(into hasher: inout Hasher) {
    switch self {
    case .path(let path, let form, _):
      hasher.combine(path as AnyKeyPath)
      hasher.combine(form)
    case .index(let name): hasher.combine(name)
    }
  }

  /// Whether each object has just one term.
  var isSingle: Bool {
    guard case .path(_, let form, _) = self else { return false }
    return form != .each
  }

  var isFolded: Bool { if case .path(_, .folded, _) = self { true } else { false } }

  /// The property and its type in words that stay the same from one start of a program to the next.
  ///
  /// The system knows the names of stored properties. Where a program has no symbols, computed ones
  /// have an address in its place, which is left out.
  var name: String {
    guard case .path(let path, _, _) = self else { return "" }
    let words = "\(path)".split(separator: " ").filter { !$0.hasPrefix("0x") }
    return "\(words.joined(separator: " ")): \(type(of: path as AnyKeyPath).valueType)"
  }

  /// The declaration that would serve it.
  var declaration: String {
    switch self {
    case .path(let path, .folded, _): "ObjectIndex(\"…\", .folded(\(path)))"
    case .path(let path, .each, _): "ObjectIndex(\"…\", each: \(path))"
    case .path(let path, .value, _): "ObjectIndex(\"…\", \(path))"
    case .index(let name): "an index named \(name)"
    }
  }
}
