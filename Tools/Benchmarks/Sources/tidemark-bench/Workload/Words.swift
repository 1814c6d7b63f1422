/// Words that documents are made of; those at the front are the frequent ones.
enum Words {
  static let common: [[UInt8]] = split(
    """
    the and of to in for with on from that is by this are not please customer order item new date \
    total status open closed paid shipped delivery address number account invoice product service \
    contact email phone message request update change before after during between available \
    waiting received returned confirmed cancelled printed package warehouse supplier quantity \
    discount payment monthly yearly weekly report summary details attached meeting tomorrow \
    morning afternoon evening office project deadline budget review draft final version comment \
    question answer problem solution error warning notice system database network server backup \
    restore device battery screen keyboard camera speaker language translation document chapter \
    section paragraph picture diagram garden kitchen window bottle basket bicycle railway station \
    platform ticket journey holiday mountain river valley forest island harbour bridge village \
    market library museum theatre concert orchestra painter engineer teacher student doctor nurse \
    farmer driver pilot captain sailor butcher baker brother sister mother father daughter cousin \
    neighbour birthday wedding autumn winter spring summer january april october december monday \
    tuesday thursday saturday sunny cloudy windy rainy yellow orange purple silver golden wooden \
    copper cotton leather plastic marble granite quiet gentle clever honest brave curious ancient \
    modern narrow gigantic electric magnetic digital seasonal temporary permanent quarterly
    """)
  static let first = split(
    "Ada Grace Alan Edsger Barbara Donald Frances Ken Margaret Niklaus Radia Tony Leslie Katherine "
      + "Dennis Hedy Linus Adele Brian Shafi Whitfield Karen Jim Evelyn Rolf Ingrid Mehmet Yuki")
  static let last = split(
    "Lovelace Hopper Turing Dijkstra Liskov Knuth Allen Thompson Hamilton Wirth Perlman Hoare "
      + "Lamport Johnson Ritchie Lamarr Goldberg Kernighan Goldwasser Diffie Jones Gray Berezin "
      + "Tanaka Yilmaz Novak Schmidt Okafor Silva Rossi Dubois Larsen")
  static let cities = split(
    "Lisbon Bergen Graz Osaka Nairobi Toronto Montevideo Tallinn Leeds Porto Zagreb Auckland Lyon "
      + "Dresden Bologna Aarhus Cusco Hobart Pune Izmir Gdansk Ghent Basel Turku")
  static let states = split("open paid shipped closed returned cancelled")

  private static func split(_ text: String) -> [[UInt8]] {
    text.split(whereSeparator: \.isWhitespace).map { Array($0.utf8) }
  }
}
