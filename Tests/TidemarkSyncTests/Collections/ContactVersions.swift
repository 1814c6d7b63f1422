import Tidemark

/// The type of the article *Changing a type* in six versions, each by a step of the article. A test
/// compares the declarations here with those in the article.
enum Contact1 {
  nonisolated enum Group: String, Codable, Sendable { case friend, family }

  nonisolated struct Contact: Codable, Identifiable, Sendable {
    var id: String
    var name: String
    var isFavourite: Bool
    var group: Group
  }

  static var schema: CollectionSchema<Contact> {
    CollectionSchema<Contact>(indexes: [ObjectIndex("name", \.name)])
  }
}

/// New fields, one optional and one with a default; a default for a field that is to go.
enum Contact2 {
  typealias Group = Contact1.Group

  nonisolated struct Contact: Codable, Identifiable, Sendable {
    var id: String
    var name: String
    var isFavourite = false
    var group: Group
    var email: String?
    var stars = 0
  }

  static var schema: CollectionSchema<Contact> {
    CollectionSchema<Contact>(
      indexes: [ObjectIndex("name", \.name)], defaults: ["stars": 0, "isFavourite": false])
  }
}

/// A property of another name, and an enum that takes values of newer programs.
enum Contact3 {
  nonisolated struct Group: RawRepresentable, Codable, Hashable, Sendable {
    var rawValue: String

    static let friend = Group(rawValue: "friend")
    static let family = Group(rawValue: "family")
  }

  nonisolated struct Contact: Codable, Identifiable, Sendable {
    var id: String
    var name: String
    var isFavourite = false
    var group: Group
    var mailAddress: String?
    var stars = 0

    enum CodingKeys: String, CodingKey {
      case id, name, isFavourite, group, stars
      case mailAddress = "email"
    }
  }

  static var schema: CollectionSchema<Contact> {
    CollectionSchema<Contact>(
      indexes: [ObjectIndex("name", \.name)], defaults: ["stars": 0, "isFavourite": false])
  }
}

/// A field less, and an index more.
enum Contact4 {
  typealias Group = Contact3.Group

  nonisolated struct Contact: Codable, Identifiable, Sendable {
    var id: String
    var name: String
    var group: Group
    var mailAddress: String?
    var stars = 0

    enum CodingKeys: String, CodingKey {
      case id, name, group, stars
      case mailAddress = "email"
    }
  }

  static var schema: CollectionSchema<Contact> {
    CollectionSchema<Contact>(
      indexes: [
        ObjectIndex("name", \.name),
        ObjectIndex("best", .descending(\.stars), .folded(\.name)),
      ],
      defaults: ["stars": 0])
  }
}

/// A new case.
enum Contact5 {
  typealias Contact = Contact4.Contact
}

extension Contact3.Group {
  static let work = Contact3.Group(rawValue: "work")
}

/// One field split in two.
enum Contact6 {
  typealias Group = Contact3.Group

  nonisolated struct Contact: Codable, Identifiable, Sendable {
    var id: String
    var first: String { didSet { name = "\(first) \(last)" } }
    var last: String { didSet { name = "\(first) \(last)" } }
    private(set) var name: String
    var group: Group
    var mailAddress: String?
    var stars = 0

    init(id: String, first: String, last: String, group: Group) {
      (self.id, self.first, self.last, self.group) = (id, first, last, group)
      name = "\(first) \(last)"
    }

    enum CodingKeys: String, CodingKey {
      case id, first, last, name, group, stars
      case mailAddress = "email"
    }
  }

  static let splitName = Upcast(from: 0) { contact in
    guard case .string(let name) = contact["name"] else { return }
    if case .string(let first) = contact["first"], case .string(let last) = contact["last"],
      name == "\(first) \(last)"
    {
      return
    }
    let words = name.split(separator: " ", maxSplits: 1).map(String.init)
    contact["first"] = .string(words.first ?? "")
    contact["last"] = .string(words.count > 1 ? words[1] : "")
  }

  static var schema: CollectionSchema<Contact> {
    CollectionSchema<Contact>(
      version: 1,
      indexes: [
        ObjectIndex("name", \.name),
        ObjectIndex("best", .descending(\.stars), .folded(\.name)),
      ],
      upcasts: [splitName], defaults: ["stars": 0])
  }
}
