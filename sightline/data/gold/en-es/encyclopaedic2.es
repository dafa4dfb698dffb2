El acueducto , construido sin una gota de argamasa , abasteció de agua a la ciudad durante casi dos mil años .
En 1843 , Ada Lovelace , hija del poeta lord Byron , publicó el que muchos consideran el primer programa informático .
Cuando el volcán entró en erupción en el verano de 1883 , la explosión se oyó a casi cinco mil kilómetros de distancia , en una isla del océano Índico .
La paz de Westfalia , firmada en 1648 , puso fin a treinta años de guerra en el centro de Europa .
A diferencia de la mayoría de los metales , el mercurio es líquido a temperatura ambiente y durante mucho tiempo se utilizó en los termómetros .
Aunque nunca había estudiado arquitectura , el joven ingeniero ganó el concurso con un proyecto que sus rivales , todos ellos con más experiencia , tacharon de imposible .
Frida Kahlo empezó a pintar mientras se recuperaba del accidente de autobús que la dejó postrada en cama durante meses .
En el siglo XV gobernaba Florencia una familia de banqueros que gastó su fortuna en arte .
Los manuscritos , que un pastor encontró por casualidad en una cueva cercana al mar Muerto , tienen más de dos mil años y se conservan sorprendentemente bien .
El año luz no mide el tiempo , sino la distancia : es el trecho que recorre la luz en doce meses , unos 9,5 billones de kilómetros .
Johann Sebastian Bach tuvo veinte hijos , cuatro de los cuales llegaron a ser compositores de renombre .
De las trece colonias que se rebelaron contra la Corona británica , Georgia era la más joven y la que menos habitantes tenía , apenas cincuenta mil en 1775 .
Venecia se asienta sobre más de un centenar de islotes separados por canales y unidos por unos 400 puentes .
Tras perder la batalla de Waterloo , Napoleón fue desterrado a Santa Elena , una remota isla del Atlántico Sur .
Nacido en Maryland en el seno de una familia de esclavos , Frederick Douglass aprendió a leer a escondidas y llegó a ser una de las voces más elocuentes del movimiento abolicionista .
La Real Academia tardó trece años en completar la primera edición del diccionario , que constaba de seis tomos .
Durante siglos se creyó que el Nilo era el río más largo del mundo , por delante del Amazonas .
Como la luz del Sol tarda más de ocho minutos en llegar hasta nosotros , siempre vemos nuestra estrella como era hace un rato , nunca como es ahora .
El lago Titicaca , situado en la frontera entre Perú y Bolivia , se encuentra a 3.812 metros sobre el nivel del mar .
Hasta la Restauración Meiji , casi nunca se permitía a los extranjeros entrar en Japón .
El primer ferrocarril subterráneo del mundo , inaugurado en Londres en enero de 1863 , funcionaba con vapor , y los pasajeros se quejaban sin cesar del humo de los túneles .
La vacuna contra la viruela , enfermedad erradicada en 1980 , fue la primera que se desarrolló .
El monte Fuji , cuya última erupción se remonta a 1707 , sigue considerándose un volcán activo .
En contra de la creencia popular , la Gran Muralla China no se ve desde la Luna , y apenas se distingue desde una órbita baja .
De quienes alcanzaron la cima aquel año , solo uno de cada cuatro lo hizo sin oxígeno embotellado .
Gutenberg no inventó la imprenta , pero sus tipos móviles abarataron los libros .
Durante su segundo viaje , James Cook cruzó tres veces el círculo polar antártico sin llegar a avistar el continente que le habían encargado encontrar .
La datación por carbono no puede aplicarse a objetos de más de unos 50.000 años de antigüedad .
Durante el asedio , que duró once meses , los habitantes se vieron obligados a comer ratas .
El koala , pese a lo que mucha gente cree , no es un oso , sino un marsupial , emparentado más estrechamente con el wombat que con ningún otro animal .
Galileo fue juzgado por la Inquisición y pasó el resto de su vida bajo arresto domiciliario .
Con una superficie de apenas 44 hectáreas , la Ciudad del Vaticano es el Estado más pequeño del mundo .
Louis Braille tenía solo quince años cuando ideó , en 1824 , el sistema de puntos en relieve con el que todavía hoy leen millones de personas ciegas .
Cuanta más sal contiene el agua , más baja es la temperatura a la que se congela .
Marco Polo dictó sus viajes a un compañero de prisión , que los puso por escrito en francés .
Se vendieron tan pocos ejemplares de la primera edición que el editor , temiendo arruinarse , aprovechó los pliegos sobrantes para envolver pescado .
Las arañas no son insectos : tienen ocho patas y el cuerpo dividido en dos partes .
Cuando llegaron los bomberos , las llamas ya habían devorado la mitad de la biblioteca .
El 6 de mayo de 1937 , el dirigible Hindenburg se incendió al aterrizar en Nueva Jersey , y en poco más de medio minuto no quedó más que el armazón .
Fue Eratóstenes quien , midiendo sombras , calculó por primera vez el tamaño de la Tierra .
Quedan menos de 400 ejemplares de esta águila en libertad , la mayoría en las montañas del interior .
Desde Pitágoras , los matemáticos han sentido fascinación por los números primos , cuya distribución parece aleatoria y , sin embargo , obedece a leyes de una regularidad asombrosa .
Con el nuevo calendario , al 4 de octubre de 1582 le siguió el 15 de octubre .
La parte izquierda del corazón bombea la sangre procedente de los pulmones , rica en oxígeno .
El ingeniero encargado de las obras murió antes de que terminaran , y fue su viuda quien supervisó la construcción del puente hasta su inauguración .
Hasta que se abrió el canal en 1914 , los barcos tenían que doblar el cabo de Hornos .
La palabra « robot » procede de una obra de teatro checa de 1920 y significa « trabajo forzado » .
El té , que los portugueses fueron los primeros en traer a Europa , no se convirtió en una bebida popular en Inglaterra hasta el siglo XVIII , cuando bajaron los impuestos .
Ninguno de los dos hermanos que inventaron el avión había ido a la universidad .
El corcho se obtiene de la corteza de un roble que crece sobre todo en Portugal y España .
Sus habitantes , aislados durante siglos del resto del mundo , hablan una lengua que no está emparentada con ninguna otra y que los lingüistas apenas han estudiado .
La máquina de vapor la perfeccionó James Watt , de quien toma su nombre la unidad de potencia .
Apenas se conserva un tercio del manuscrito , copiado por monjes hacia el año 800 .
Barato de fabricar y fácil de moldear , el plástico no tardó en sustituir a la madera y al metal en infinidad de objetos , desde teléfonos hasta juguetes , con consecuencias que nadie previó .
La caña de azúcar se cultivó por primera vez en Nueva Guinea , desde donde se extendió a la India y China .
Emily Dickinson escribió cerca de 1.800 poemas , de los que solo un puñado se publicó en vida de la autora .
El último hablante del dálmata , lengua que se hablaba antiguamente a orillas del Adriático , murió en una explosión en 1898 , y la lengua murió con él .
Saturno flotaría en el agua si existiera un océano lo bastante grande para contenerlo .
Cuenta la leyenda que Roma la fundaron dos hermanos gemelos criados por una loba .
En lugar del oro con el que habían soñado , los exploradores encontraron ciénagas , mosquitos y un pueblo que no tenía ninguna intención de dejarse conquistar .
El rey , temiendo una revuelta , huyó de noche disfrazado de criado , pero lo reconocieron en la frontera .
A los ocho años , Mozart ya había compuesto su primera sinfonía .
Hipatia de Alejandría , matemática y filósofa que daba clase tanto a paganos como a cristianos , fue asesinada por una turba en el año 415 por motivos que aún se discuten .
No se sabe con certeza quién esculpió las enormes cabezas de piedra ni para qué servían .
Desde un lugar determinado , un eclipse total solo puede verse una vez cada 375 años por término medio .
Las bacterias que viven en nuestro intestino son más numerosas que las estrellas de la galaxia , y sin ellas no podríamos digerir gran parte de lo que comemos .
En el hemisferio sur , donde las estaciones van al revés , la Navidad cae en pleno verano .
Enviado al frente con diecinueve años , escribió en las trincheras la novela que lo haría famoso .
Pese a haber perdido el uso de una mano a los veinticuatro años , llegó a escribir la novela más leída de la lengua española .
El terremoto de 1755 , al que siguieron un maremoto e incendios que duraron varios días , destruyó gran parte de Lisboa .
Charles Darwin dudó durante más de dos décadas antes de dar a conocer su teoría .
En Finlandia , donde las noches de invierno pueden durar semanas , dicen que hay más saunas que coches : aproximadamente una por cada dos habitantes .
La torre , que había empezado a inclinarse antes de terminarse , permaneció cerrada al público de 1990 a 2001 .
Pocos escritores han influido tanto como Jorge Luis Borges en la literatura latinoamericana .
Los médicos del siglo XIX recetaban arsénico para casi todo , desde las enfermedades de la piel hasta la melancolía , sin sospechar que a menudo era peor el remedio que la enfermedad .
