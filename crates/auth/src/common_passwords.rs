//! Passwords that everybody tries. Owns: the list of words, and what is done to a word to make a
//! password of it that is no better. Does not know how long a password has to be.

/// Digits and signs at the ends of a word that do not make it a password, at most so many.
const AFFIX_MAX: usize = 6;
/// Longest part that is only repeated.
const PERIOD_MAX: usize = 5;
/// Shortest part of a name that is looked for.
const NAME_PART_MIN: usize = 3;
/// Rows of keyboards and the order of letters and digits, along which fingers walk.
const WALKS: [&str; 8] = [
    "abcdefghijklmnopqrstuvwxyz",
    "0123456789",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
];

/// The words, in order, in small letters.
const WORDS: &str = "\
    123456a 123456q 1234qwer 123abc 123qwe 123qweasd 12qwaszx 1a2b3c4d 1password 1q2w3e4r \
    1q2w3e4r5t 1q2w3e4r5t6y 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 1qwerty 1z2x3c4v 2wsx3edc a1b2c3 \
    a1b2c3d4 a1s2d3f4 aa123456 aaa aaaa abc abc123 abc12345 abcabc abcd abcd1234 abcde abcdef \
    abcdefg abcdefgh abcdefghi access accessdenied account adam admin adminadmin administrator \
    adminpass adobe ajax alex alexander alexandra always amanda amazon amber america andrea \
    andreas andrew android angel angela angels anna anthony anything apple apples april \
    argentina army arsenal asd123 asdasd asdf asdf1234 asdfgh asdfghjkl asdqwe ashley assassin \
    asshole audi august australia austria autumn avengers azerty azertyuiop baby babyboy \
    babygirl backup bailey banana barbara barbaz barcelona baseball basketball bastard batman \
    batterystaple bayern bbb beach bear beatles beautiful berlin bible birthday bitch bitcoin \
    black blahblah blessed blink182 blizzard blue bonjour boss boston brandon brasil brazil \
    brian broncos brother buddy budlight bulldog bullshit bunny business buster butterfly \
    california callofduty camaro canada candy captain cat cats celtic champion change changeit \
    changeme changethis charizard charles charlie cheese chelsea cherry chevrolet chevy chicago \
    chicken china chocolate christ christian christina christine christmas church ciao cisco \
    cluster coffee college commando company computer confidential cookie cool coolguy coolman \
    correcthorse correcthorsebatterystaple corvette counterstrike cowboys cricket crypto crystal \
    cuda cutie dad daddy daisy dallas dance dancer daniel darling database david debian december \
    default dell demo dennis desktop destroyer deutschland diablo diamond dick dienstag docker \
    dodgers dog doggy dogs dollar dolphin donnerstag donotknow dontknow dortmund dragon dream \
    dreamer dreams ducati duck eagle eagles earth easter edcrfv edward elastane elephant \
    elizabeth emily eminem emma energy england enter eric ethereum everything example facebook \
    faith falcon fall family father february felix ferrari florian florida flower flowers foo \
    foobar foobarbaz football ford forest forever fortnite france freedom freitag friday friend \
    friends frodo fruehling fucker fuckme fuckoff fuckyou galaxy gandalf gangster garden george \
    germany ghetto ginger gmail god godislove gold golden golf golfer google gorgeous gpu gpus \
    green greenday guest guinness guitar h4ck3r hack hacker hacking hallo halloween halo hannah \
    happy harley harrypotter hawk heaven heineken hello hellothere helloworld herbst hero hobbit \
    hockey hogwarts hola holiday honda honey honeybee hope horse hotmail hulk hunter hunter2 \
    hurricane husband idontknow iloveher iloveit iloveme iloveu iloveyou iloveyou2 imissyou \
    india initial initpass instagram internet iphone ironman island jaguar james january japan \
    jasmin jasmine jason jennifer jessica jesus jesuschrist john joker jordan joseph joshua \
    julian july june jupyter justin juventus kevin keyboard killer kimberly king kissme kitten \
    kitty knight koala kube kubernetes lakers lamborghini laptop laura lauren legend leopard \
    letmein letmein1 letmeinnow liberty lightning lily linda linkedin linkinpark linux lion \
    liverpool lkjhgfdsa login logmein logon london lorem loremipsum loser love lovelove lovely \
    loveme lover loveyou lucky lucky7 lukas madrid magic manager manchester manutd march maria \
    marine mario martin mary master mastermind matrix matthew maverick max may melissa mercedes \
    metallica mexico michael michelle microsoft million minecraft mittwoch mnbvcxz molly mom \
    mommy monday money monitor monkey monkey1 montag moon moscow mother mountain munich music \
    mustang mypass mypassword myspace mysql mystery naruto natalie naughty navy neo network \
    newpassword newyork nicole ninja nintendo nirvana nissan nobody nokia noone nothing november \
    number1 nvidia ocean october office oldpassword oliver olivia opensesame openup operator \
    oracle orange orchid owner packers panda panther paris pass pass1234 passcode passme \
    passpass passphrase passwd password passwort patricia patrick patriots peace peanut penguin \
    pepper personal peter phoenix photoshop pikachu pimp pink pirate pizza planet playboy \
    playstation poiuytrewq pokemon police polska pony porsche postgres power predator pretty \
    prince princess princess1 private puppy purple pussy pytorch q1w2e3r4 q1w2e3r4t5 q2w3e4r5 \
    qazwsx qazwsxedc queen qwe123 qweasd qweasdzxc qweqwe qwer qwer1234 qwert qwerty qwertyuiop \
    qwertz qwertzuiop rabbit rachel raiders rainbow ranger rangers raven realmadrid rebecca red \
    redsox research researcher rich richard river robert roblox rocknroll rockstar rocky root \
    rootroot rose ruby rugby runai russia ryan sabrina safe safety samantha sample samstag \
    samsung samurai sara sarah sasuke saturday scheduler school science scorpion sebastian \
    secret secretword secure security sephiroth september server service sesame sexsex sexy \
    shadow shark shit signin silver sister skateboard skywalker slipknot slurm smile smiley \
    smokey snake sniper snowboard soccer solarwinds soldier something sommer sonic sonntag \
    sophia sophie spider spiderman spring star starcraft starlight stars startrek starwars \
    steelers stefan stephanie steven storm strawberry student subaru success sucker sugar summer \
    sunday sunshine superman superuser surfing suzuki sweetheart sweetie swordfish sysadmin \
    system teacher temp temporary temppass tennis tensorflow tequila terminator test tester \
    testing testpass testtest texas thepassword thomas thunder thursday tiger tobias together \
    tokyo toor topsecret tornado toyota training trooper trustno1 trustnoone tuesday turkey \
    turtle twitter tyler ubuntu unicorn universe university user username vacation vader vanessa \
    victoria vienna vodka volleyball volvo warcraft warrior wednesday weekend welcome \
    welcomeback whale whatever whiskey white wife william windows winner winter wizard wolf \
    wonderwoman wsxedc xbox xxx xxxx yahoo yamaha yankees yellow yoda youtube zaq12wsx zaq1zaq1 \
    zaqxsw zelda zinch zxc123 zxcv zxcvbn zxcvbnm zzz";

/// Reason why a password is a common guess, in general or for this user; `None` if it is not.
pub(crate) fn reason(password: &str, username: &str) -> Option<&'static str> {
    let lower = password.to_lowercase();
    if is_repetition(&lower) {
        return Some("repeats a few characters");
    }
    if is_walk(&lower) {
        return Some("is a row of the keyboard or the alphabet");
    }
    let names = names(username);
    let parts: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut common = None;
    if forms(&lower).iter().any(|form| is_made_of(form, &parts)) {
        return Some("is made of the user's name");
    }
    for form in forms(&lower) {
        if names.contains(&form) || names.contains(&form.chars().rev().collect()) {
            return Some("is made of the user's name");
        }
        let half = form.get(..form.len() / 2).filter(|half| form[half.len()..] == **half);
        if is_word(&form) || half.is_some_and(is_word) {
            common = Some("is one of the passwords that are tried first");
        }
    }
    common
}

fn is_word(text: &str) -> bool {
    WORDS.split_ascii_whitespace().any(|word| word == text)
}

/// The words that a password may have been made of: without affixes, and with letters in place of
/// similar digits and signs.
fn forms(lower: &str) -> Vec<String> {
    let is_affix = |char: char| !char.is_alphabetic();
    let ends = [lower, lower.trim_end_matches(is_affix), lower.trim_matches(is_affix)];
    let few = |form: &&str| lower.chars().count() - form.chars().count() <= AFFIX_MAX;
    let read = |one: char| move |form: &str| form.chars().map(|char| letter(char, one)).collect();
    let plain = ends.into_iter().filter(few);
    plain.flat_map(|form| [form.to_owned(), read('i')(form), read('l')(form)]).collect()
}

/// Letter that a digit or sign resembles; `1` resembles `one`.
fn letter(char: char, one: char) -> char {
    match char {
        '0' => 'o',
        '1' | '!' | '|' => one,
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' | '+' => 't',
        other => other,
    }
}

/// Names of a user: the address, the texts before and after the `@`, and parts of both.
fn names(username: &str) -> Vec<String> {
    let lower = username.to_lowercase();
    let (local, site) = lower.split_once('@').unwrap_or((&lower, ""));
    let parts = |text: &str| -> Vec<String> {
        text.split(|char: char| !char.is_alphanumeric()).map(str::to_owned).collect()
    };
    let mut names = vec![lower.clone(), local.to_owned(), site.to_owned(), parts(local).concat()];
    let mut turned = parts(local);
    turned.reverse();
    names.push(turned.concat());
    names.extend(parts(local));
    names.extend(parts(site));
    names.retain(|name| name.chars().count() >= NAME_PART_MIN);
    names
}

/// True if its letters are parts one after another, with few other characters between them.
fn is_made_of(text: &str, parts: &[&str]) -> bool {
    let letters: Vec<char> = text.chars().filter(|char| char.is_alphabetic()).collect();
    if letters.is_empty() || text.chars().count() - letters.len() > AFFIX_MAX {
        return false;
    }
    // True for each prefix of the letters that is made of parts.
    let mut made = vec![false; letters.len() + 1];
    made[0] = true;
    for end in 1..=letters.len() {
        let ends_with = |part: &&str| {
            let length = part.chars().count();
            let before = end.checked_sub(length).filter(|before| made[*before]);
            before.is_some_and(|before| letters[before..end].iter().copied().eq(part.chars()))
        };
        made[end] = parts.iter().any(ends_with);
    }
    made[letters.len()]
}

/// True if it is a short part again and again, such as `abcabcab`.
fn is_repetition(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let most = PERIOD_MAX.min(chars.len() / 2);
    (1..=most).any(|period| chars.iter().zip(&chars[period..]).all(|(a, b)| a == b))
}

/// True if it follows one row, forwards or backwards.
fn is_walk(text: &str) -> bool {
    let turned: String = text.chars().rev().collect();
    WALKS.into_iter().any(|row| {
        let on = [row, row].concat();
        on.contains(text) || on.contains(&turned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_first_is_refused_however_it_is_dressed_up() {
        for password in [
            "password",
            "Password1",
            "PASSWORD123!",
            "P@ssw0rd",
            "p4$$w0rd2024",
            "passw0rd!!",
            "letmein1",
            "Summer2026!",
            "Winter#2026",
            "iloveyou",
            "Admin123",
            "welcome1!",
            "qwertyuiop",
            "QWERTY123",
            "1q2w3e4r",
            "zaq12wsx",
            "1qaz2wsx",
            "trustno1",
            "changeme",
            "!!admin!!",
            "monkeymonkey",
            "dr4g0n2000",
            "$unshine1",
            "elastane1",
            "Nvidia2026",
        ] {
            assert!(reason(password, "ann.smith@x.org").is_some(), "{password}");
        }
    }

    #[test]
    fn rows_and_repetitions_are_refused() {
        for password in [
            "12345678",
            "123456789",
            "87654321",
            "1234567890",
            "abcdefgh",
            "hgfedcba",
            "qwertzui",
            "asdfghjkl",
            "abcabcabc",
            "12121212",
            "11111111",
            "abab abab ",
            "ababababa",
        ] {
            assert!(reason(password, "ann@x.org").is_some(), "{password}");
        }
    }

    #[test]
    fn what_is_made_of_the_name_is_refused() {
        for password in [
            "ann.smith@example.org",
            "ann.smith",
            "AnnSmith1",
            "SmithAnn2026",
            "smith2026",
            "example1",
            "htims.nna",
            "5m1th2026",
            "Example.Org",
            "!smith!!",
            "Ann@Example1",
            "smith-ann-org1",
        ] {
            let reason = reason(password, "ann.smith@example.org");
            assert_eq!(reason, Some("is made of the user's name"), "{password}");
        }
    }

    #[test]
    fn others_are_not() {
        for password in [
            "correct horse",
            "dragon4829104729",
            "Tz7kLq2w",
            "ann likes cake",
            "summer in the city",
            "8f3kd92x",
            "hunter of boars",
            "été-à-la-mer",
            "pass the salt, please",
            "naїve ñandú",
            "smithsonian",
            "my password is long",
        ] {
            assert_eq!(reason(password, "ann.smith@example.org"), None, "{password}");
        }
    }

    #[test]
    fn the_words_are_in_order_and_each_once() {
        let words: Vec<_> = WORDS.split_ascii_whitespace().collect();
        assert!(words.is_sorted_by(|a, b| a < b) && words.len() > 500);
        assert!(words.iter().all(|word| *word == word.to_lowercase()));
    }
}
