internal import Tidemark

/// The part of an object's type that a version of a program knows, chosen by a seed.
struct VersionShape: Sendable {
  /// Names of whole numbers that it has fields for, each with the value that is the default.
  var extras: [String: Int] = [:]
  /// How many of the cases it knows.
  var cases = 1
  /// Whether it knows the ids of parts, and their serials, which tell one part from all others.
  var knowsIDs = false
  var knowsSerials = false
}

/// A version of a program. Decoding has no other way to what a seed has chosen than the task's.
protocol ProgramVersion: Sendable {
  static var shape: VersionShape { get }
}

enum OlderProgram: ProgramVersion {
  @TaskLocal static var shape = VersionShape()
}

enum NewerProgram: ProgramVersion {
  @TaskLocal static var shape = VersionShape()
}

struct VersionName: CodingKey {
  let stringValue: String
  var intValue: Int? { nil }
  init(_ name: String) { stringValue = name }
  init?(stringValue: String) { self.init(stringValue) }
  init?(intValue: Int) { nil }
}

/// An element of an object's containers.
struct VersionPart<Version: ProgramVersion>: Codable, Hashable, Sendable {
  var id: Int?
  var name: Int
  /// Another one for each part that the newer program makes; -1 where there is none.
  var serial = -1

  init(id: Int?, name: Int, serial: Int = -1) {
    (self.id, self.name, self.serial) = (id, name, serial)
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: VersionName.self)
    name = try fields.decode(Int.self, forKey: VersionName("name"))
    if Version.shape.knowsIDs {
      id = try fields.decodeIfPresent(Int.self, forKey: VersionName("id"))
    }
    if Version.shape.knowsSerials {
      serial = try fields.decode(Int.self, forKey: VersionName("serial"))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: VersionName.self)
    try fields.encode(name, forKey: VersionName("name"))
    if Version.shape.knowsIDs { try fields.encodeIfPresent(id, forKey: VersionName("id")) }
    if Version.shape.knowsSerials { try fields.encode(serial, forKey: VersionName("serial")) }
  }
}

enum VersionKey: String, Codable, CaseIterable, Sendable { case a, b, c }

enum VersionChoice<Version: ProgramVersion>: Codable, Hashable, Sendable {
  case left(VersionPart<Version>)
  case right(VersionPart<Version>)
}

/// An object as a version of the program knows it.
struct VersionItem<Version: ProgramVersion>: Codable, Identifiable, Hashable, Sendable {
  typealias Part = VersionPart<Version>

  struct Containers: Codable, Hashable, Sendable {
    var list: [Part] = []
    var set: Set<Part> = []
    var names: [String: Part] = [:]
    var keys: [VersionKey: Part] = [:]
    var grid: [[Part]] = []
    var one: Part?
    var two: Part?
    var choice: VersionChoice<Version>?
  }

  var id: String
  var title = 0
  var kind = 0
  var extras: [String: Int] = [:]
  var parts = Containers()

  init(id: String) { self.id = id }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: VersionName.self)
    id = try fields.decode(String.self, forKey: VersionName("id"))
    title = try fields.decode(Int.self, forKey: VersionName("title"))
    kind = try fields.decode(Int.self, forKey: VersionName("kind"))
    guard kind < Version.shape.cases else {
      throw DecodingError.dataCorruptedError(
        forKey: VersionName("kind"), in: fields, debugDescription: "a case of a newer version")
    }
    for name in Version.shape.extras.keys {
      extras[name] = try fields.decode(Int.self, forKey: VersionName(name))
    }
    parts = try fields.decode(Containers.self, forKey: VersionName("parts"))
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: VersionName.self)
    try fields.encode(id, forKey: VersionName("id"))
    try fields.encode(title, forKey: VersionName("title"))
    try fields.encode(kind, forKey: VersionName("kind"))
    for (name, value) in extras { try fields.encode(value, forKey: VersionName(name)) }
    try fields.encode(parts, forKey: VersionName("parts"))
  }

  /// The rules of the collection in this version of the program.
  static var schema: CollectionSchema<VersionItem> {
    var defaults: [String: JSONValue] = [:]
    for (name, value) in Version.shape.extras { defaults[name] = .integer(value) }
    for path in ["list.*", "set.*", "names.*", "keys.*", "grid.*.*", "one", "two", "choice.*.*"] {
      defaults["parts.\(path).serial"] = -1
    }
    return CollectionSchema(
      indexes: [
        ObjectIndex("title", \.title),
        ObjectIndex("extras", computed: { $0.extras.map { "\($0.key) \($0.value)" } }),
      ],
      defaults: defaults)
  }

  /// All parts with the places that they stand in; those that have no names stand in one.
  var places: [(place: String, part: Part)] {
    var places = parts.list.map { ("list", $0) } + parts.set.map { ("set", $0) }
    places += parts.grid.flatMap(\.self).map { ("grid", $0) }
    places += parts.names.map { ("names.\($0.key)", $0.value) }
    places += parts.keys.map { ("keys.\($0.key)", $0.value) }
    if let part = parts.one { places.append(("one", part)) }
    if let part = parts.two { places.append(("two", part)) }
    switch parts.choice {
    case .left(let part): places.append(("left", part))
    case .right(let part): places.append(("right", part))
    case nil: break
    }
    return places
  }
}
